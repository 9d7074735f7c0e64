# Table of performance targets and measured values, in Markdown, from the JSON lines of kolo-device-bench and kolo-bench. If
# several rows belong to a target, the worst one counts.

function number(name) {
  if (!match($0, "\"" name "\":-?[0-9][0-9.e+-]*")) return -1
  return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
}

function is(name, text) { return index($0, "\"" name "\":\"" text "\"") > 0 }

function say(aim, unit, measured, where, is_reached) {
  printf "| %s | ", aim
  if (where == "") print "not measured | - |"
  else printf unit " (%s) | %s |\n", measured, where, is_reached ? "yes" : "no"
}

BEGIN { count = split("float32 bfloat16 float8_e4m3 float8_e5m2", types) }

is("collective", "reduce_kernel") {
  for (i = 1; i <= count; i++) {
    if (!is("type", types[i])) continue
    share = number("of_copy")
    if (share < 0 || (types[i] in kernel && share >= kernel[types[i]])) continue
    kernel[types[i]] = share
    kernel_where[types[i]] = sprintf("%d MiB", number("bytes") / 1048576)
  }
}

is("collective", "allreduce") && index($0, "--device cuda") && index($0, "--transport cuda_ipc") {
  bytes = number("bytes")
  time = number("median_us")
  if (time <= 0) next
  if (is("library", "gloo")) gloo[bytes] = time
  if (!is("library", "kolo")) next
  enqueue = number("enqueue_us")
  is_small = bytes >= 8 && bytes <= 65536
  if (is("form", "captured")) {
    if (is_small && enqueue > worst_launch) {
      worst_launch = enqueue
      launch_where = bytes " B"
    }
    next
  }
  if (bytes >= 67108864) {
    if (!(bytes in kolo) || time > kolo[bytes]) kolo[bytes] = time
    limit = number("limit_us")
    if (limit > 0 && (share_where == "" || limit / time < worst_share)) {
      worst_share = limit / time
      share_where = sprintf("%d MiB", bytes / 1048576)
    }
  }
  if (is_small && enqueue > worst_enqueue) {
    worst_enqueue = enqueue
    enqueue_where = bytes " B"
  }
}

END {
  for (bytes in kolo) {
    if (!(bytes in gloo) || (gloo_where != "" && gloo[bytes] / kolo[bytes] >= worst_gloo)) continue
    worst_gloo = gloo[bytes] / kolo[bytes]
    gloo_where = sprintf("%d MiB", bytes / 1048576)
  }
  print "| target | measured | reached |"
  print "|---|---|---|"
  say("all-reduce of two ranks that share a device, 64 MiB and up: 80 % of its copy bandwidth", "%.1f %%", 100 * worst_share, share_where, worst_share >= 0.8)
  say("the same: 20 times gloo on CUDA tensors", "%.1f times", worst_gloo, gloo_where, worst_gloo >= 20)
  say("all-reduce of 8 B to 64 KiB: under 10 us of the host's time to enqueue", "%.2f us", worst_enqueue, enqueue_where, worst_enqueue < 10)
  say("the same from a CUDA graph: under 10 us of the host's time to launch", "%.2f us", worst_launch, launch_where, worst_launch < 10)
  for (i = 1; i <= count; i++)
    say("reduce kernel of " types[i] ": 90 % of the copy bandwidth", "%.1f %%", 100 * kernel[types[i]], kernel_where[types[i]], kernel[types[i]] >= 0.9)
}
