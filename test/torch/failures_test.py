"""What goes wrong with the backend kolo is a clear error on each rank that it concerns."""

import os
import unittest
from datetime import timedelta

import ranks
import torch
import torch.distributed as dist


HAS_ABORT = ranks.TORCH >= (2, 11)  # torch 2.6 has no abort of backends
HAS_ERROR = ranks.TORCH >= (2, 15)  # before, Python cannot ask a backend for its error


def text_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def backend():
    return dist.group.WORLD._get_backend(torch.device("cpu"))


def lose_a_peer(rank, size):
    dist.all_reduce(torch.ones(4))
    if rank == 1:
        os._exit(3)
    texts = [text_of(lambda: dist.all_reduce(torch.ones(4))),
             text_of(lambda: dist.all_reduce(torch.ones(4), async_op=True).wait()),
             text_of(lambda: dist.recv(torch.ones(4), 1))]
    return [*texts, str(backend().get_error()) if HAS_ERROR else None]


def wait_too_long(rank, size):
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=1))
    if rank == 0:
        texts = [text_of(lambda: dist.recv(torch.ones(4), 1))]
    else:
        texts = []
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=60))
    dist.barrier()
    late = torch.zeros(4)
    if rank == 0:
        dist.recv(late, 1)
    else:
        dist.send(torch.full((4,), 9.0), 0)
    return [*texts, late.tolist()]


def call_different_counts(rank, size):
    return text_of(lambda: dist.all_reduce(torch.ones(4 + rank)))


def send_another_length(rank, size):
    if rank == 1:
        dist.send(torch.ones(3), 0)
        return ""
    return text_of(lambda: dist.recv(torch.ones(4), 1))


def abort_on_one_rank(rank, size):
    if rank == 0:
        backend().abort()
        return text_of(lambda: dist.all_reduce(torch.ones(4)))
    return text_of(lambda: dist.all_reduce(torch.ones(4)))


def give_wrong_arguments(rank, size):
    x = torch.ones(4)
    group = backend()
    return [text_of(lambda: group.allreduce([torch.ones(4, device="meta")], dist.AllreduceOptions())),
            text_of(lambda: dist.all_reduce(x, dist.ReduceOp.BAND)),
            text_of(lambda: dist.all_gather_into_tensor(torch.ones(3), x)),
            text_of(lambda: group.broadcast([torch.eye(2).to_sparse_csr()], dist.BroadcastOptions()))]


def end_without_destroy(rank, size):
    dist.all_reduce(torch.ones(4))
    if rank == 0:
        dist.irecv(torch.ones(4), 1)
    return dist.get_rank()


def fork_a_worker(rank, size):
    import kolo_torch

    dist.all_reduce(torch.ones(4))
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writes, text_of(lambda: dist.all_reduce(torch.ones(4))).encode())
        kolo_torch._backend.shutdown(backend())  # destroy_process_group() would remove the file of torch's store
        os._exit(0)
    os.waitpid(child, 0)
    data = torch.ones(4)
    dist.all_reduce(data)
    return os.read(reads, 1000).decode(), data.tolist()


def leave_while_any_is_awaited(rank, size):
    if rank == 2:
        return 0
    if rank == 1:
        dist.send(torch.full((4,), 5.0), 0)
        return 0
    data = torch.zeros(4)
    dist.recv(data)
    return data.tolist()


class Failures(unittest.TestCase):
    def test_a_lost_peer_is_named(self):
        (texts,) = ranks.run(lose_a_peer, 2, lost=(1,))
        for text in texts[:3]:
            self.assertIn("DistBackendError", text)
            self.assertRegex(text, "rank 1 .*is gone")
        self.assertEqual(texts[3], "ErrorType.REMOTE_ERROR" if HAS_ERROR else None)

    @unittest.skipIf(ranks.TORCH < (2, 15), "torch sets the timeout of groups of gloo and NCCL alone")
    def test_a_receive_that_times_out_leaves_the_group_usable(self):
        texts, _ = ranks.run(wait_too_long, 2)
        self.assertRegex(texts[0], "Timed out in kolo:recv .*from rank 1 .*1000 ms")
        self.assertEqual(texts[1], [9.0] * 4)

    def test_different_counts_fail_on_both_ranks(self):
        for text in ranks.run(call_different_counts, 2):
            self.assertRegex(text, "mismatch.*rank (0.*4|1.*5) float32 sum, rank (0.*4|1.*5) float32 sum")  # either detects it

    def test_a_message_of_another_length_is_refused(self):
        self.assertRegex(ranks.run(send_another_length, 2)[0], "rank 1 sent 12 bytes, and the tensor has 16")

    @unittest.skipUnless(HAS_ABORT, "torch 2.6 has no abort of backends")
    def test_abort_fails_the_calls_of_other_ranks(self):
        for text in ranks.run(abort_on_one_rank, 2):
            self.assertIn("the program called abort()", text)

    def test_wrong_arguments_are_refused_before_anything_is_sent(self):
        device, op, size, layout = ranks.run(give_wrong_arguments, 2)[0]
        self.assertIn("the tensor is on meta", device)
        self.assertIn("Cannot use ReduceOp.BAND with non-integral dtype", op)
        self.assertIn("3 elements for 2 ranks of 4", size)
        self.assertIn("not supported", layout)

    def test_a_program_may_end_without_destroy_process_group(self):
        self.assertEqual(ranks.run(end_without_destroy, 2), [0, 1])

    def test_a_forked_process_neither_uses_nor_ends_the_group(self):
        for text, data in ranks.run(fork_a_worker, 2):
            self.assertIn("process", text)
            self.assertEqual(data, [2.0] * 4)

    def test_a_rank_may_leave_while_another_receives_from_any(self):
        self.assertEqual(ranks.run(leave_while_any_is_awaited, 3)[0], [5.0] * 4)


if __name__ == "__main__":
    unittest.main()
