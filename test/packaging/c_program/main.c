/* A user's program in plain C: an all-reduce of the ranks that a launcher starts, or of one rank alone. */
#include <stdio.h>

#include <kolo.h>
#include <kolo_servers.h>
#include <kolo_statistics.h>
#include <kolo_store.h>

int main(void) {
  kolo_communicator* world;
  int value, size;
  if (kolo_create_from_environment(NULL, &world) != KOLO_OK) {
    fprintf(stderr, "%s\n", kolo_last_failure(NULL).text);
    return 1;
  }
  size = kolo_size(world);
  value = kolo_rank(world) + 1;
  if (kolo_all_reduce(world, &value, &value, 1, KOLO_INT32, KOLO_SUM, NULL, NULL) != KOLO_OK) {
    fprintf(stderr, "%s\n", kolo_last_failure(world).text);
    return 1;
  }
  printf("kolo %s over %s: the sum of %d ranks is %d\n", kolo_version(), kolo_transport_name(world), size, value);
  kolo_free(world);
  return value == size * (size + 1) / 2 ? 0 : 1;
}
