// Writes 1, flushes, writes 2, commits, writes 3, flushes, and is killed.
#include <signal.h>
#include <stdio.h>
#include <tidelane.h>
#include <unistd.h>

#include <hdf5.h>

static int put(hid_t data, int number) {
  int all[100];
  for (int i = 0; i < 100; ++i) all[i] = number;
  return H5Dwrite(data, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, all);
}

int main(int count, char** words) {
  const hsize_t size = 100;
  if (count != 2) return 2;
  const hid_t file = H5Fcreate(words[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, &size, NULL);
  const hid_t data =
      H5Dcreate2(file, "data", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (put(data, 1) < 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) < 0) return 3;
  if (put(data, 2) < 0 || tidelane_commit(file) < 0) return 4;
  if (put(data, 3) < 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) < 0) return 5;
  kill(getpid(), SIGKILL);
  return 6;
}
