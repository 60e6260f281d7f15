#include "throttle/operations.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace tidelane::throttle {
namespace {

constexpr double kAttrSeconds = 1.0;

// Nodes that exist only here. An Inode's address is never this small.
constexpr fuse_ino_t kControlDir = 2;
constexpr fuse_ino_t kStatsFile = 3;
constexpr char kControlDirName[] = ".throttle";
constexpr char kStatsName[] = "stats";

Mount& mount_of(fuse_req_t req) { return *static_cast<Mount*>(fuse_req_userdata(req)); }

bool is_control(fuse_ino_t ino) { return ino == kControlDir || ino == kStatsFile; }

Inode* inode_of(fuse_ino_t ino) { return reinterpret_cast<Inode*>(ino); }

int fd_of(fuse_req_t req, fuse_ino_t ino) {
  return ino == FUSE_ROOT_ID ? mount_of(req).root : inode_of(ino)->fd;
}

// An O_PATH descriptor cannot be read, truncated or chmod'ed; its name in /proc can.
std::string proc_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

uint64_t now_ns() {
  timespec t;
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000ull + static_cast<uint64_t>(t.tv_nsec);
}

void sleep_until(uint64_t deadline_ns) {
  const timespec t{.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000ull),
                   .tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000ull)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

void reply_status(fuse_req_t req, int result) { fuse_reply_err(req, result < 0 ? errno : 0); }

struct stat control_attr(fuse_ino_t ino) {
  struct stat attr{};
  attr.st_ino = ino;
  attr.st_mode = ino == kControlDir ? (S_IFDIR | 0755) : (S_IFREG | 0644);
  attr.st_nlink = 1;
  attr.st_uid = ::getuid();
  attr.st_gid = ::getgid();
  return attr;
}

// ---- names ----------------------------------------------------------------------------------

void reply_control_entry(fuse_req_t req, fuse_ino_t ino) {
  fuse_entry_param e{};
  e.ino = ino;
  e.attr = control_attr(ino);
  e.entry_timeout = e.attr_timeout = kAttrSeconds;
  fuse_reply_entry(req, &e);
}

bool make_entry(fuse_req_t req, fuse_ino_t parent, const char* name, fuse_entry_param* e) {
  *e = {};
  Inode* inode = mount_of(req).inodes.look_up(fd_of(req, parent), name, &e->attr);
  if (inode == nullptr) return false;
  e->ino = reinterpret_cast<fuse_ino_t>(inode);
  e->attr_timeout = e->entry_timeout = kAttrSeconds;
  return true;
}

void reply_entry(fuse_req_t req, fuse_ino_t parent, const char* name) {
  fuse_entry_param e;
  if (make_entry(req, parent, name, &e)) {
    fuse_reply_entry(req, &e);
  } else {
    fuse_reply_err(req, errno);
  }
}

void on_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (parent == FUSE_ROOT_ID && std::strcmp(name, kControlDirName) == 0) {
    return reply_control_entry(req, kControlDir);
  }
  if (parent == kControlDir) {
    if (std::strcmp(name, kStatsName) == 0) return reply_control_entry(req, kStatsFile);
    fuse_reply_err(req, ENOENT);
    return;
  }
  reply_entry(req, parent, name);
}

void forget_one(Mount& mount, fuse_ino_t ino, uint64_t lookups) {
  if (ino != FUSE_ROOT_ID && !is_control(ino)) mount.inodes.forget(inode_of(ino), lookups);
}

void on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups) {
  forget_one(mount_of(req), ino, lookups);
  fuse_reply_none(req);
}

void on_forget_multi(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  for (size_t i = 0; i < count; ++i) forget_one(mount_of(req), forgets[i].ino, forgets[i].nlookup);
  fuse_reply_none(req);
}

void on_readlink(fuse_req_t req, fuse_ino_t ino) {
  char target[4096];
  const ssize_t n = ::readlinkat(fd_of(req, ino), "", target, sizeof target - 1);
  if (n < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  target[n] = '\0';
  fuse_reply_readlink(req, target);
}

// Answers with the entry that a call has just made.
void reply_made(fuse_req_t req, int result, fuse_ino_t parent, const char* name) {
  if (result != 0) {
    fuse_reply_err(req, errno);
  } else {
    reply_entry(req, parent, name);
  }
}

bool refuse_control(fuse_req_t req, fuse_ino_t one, fuse_ino_t other) {
  if (!is_control(one) && !is_control(other)) return false;
  fuse_reply_err(req, EPERM);
  return true;
}

void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  if (refuse_control(req, parent, parent)) return;
  reply_made(req, ::mkdirat(fd_of(req, parent), name, mode), parent, name);
}

void on_symlink(fuse_req_t req, const char* target, fuse_ino_t parent, const char* name) {
  if (refuse_control(req, parent, parent)) return;
  reply_made(req, ::symlinkat(target, fd_of(req, parent), name), parent, name);
}

void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char* name) {
  if (refuse_control(req, ino, parent)) return;
  const std::string from = proc_path(fd_of(req, ino));
  reply_made(req, ::linkat(AT_FDCWD, from.c_str(), fd_of(req, parent), name, AT_SYMLINK_FOLLOW),
             parent, name);
}

void remove_name(fuse_req_t req, fuse_ino_t parent, const char* name, int flags) {
  if (refuse_control(req, parent, parent)) return;
  reply_status(req, ::unlinkat(fd_of(req, parent), name, flags));
}

void on_unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  remove_name(req, parent, name, 0);
}

void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  remove_name(req, parent, name, AT_REMOVEDIR);
}

void on_rename(fuse_req_t req, fuse_ino_t from, const char* from_name, fuse_ino_t to,
               const char* to_name, unsigned flags) {
  if (refuse_control(req, from, to)) return;
  reply_status(req, ::renameat2(fd_of(req, from), from_name, fd_of(req, to), to_name, flags));
}

// ---- attributes -----------------------------------------------------------------------------

void on_getattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  struct stat attr;
  if (is_control(ino)) {
    attr = control_attr(ino);
  } else if (::fstatat(fd_of(req, ino), "", &attr, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
    fuse_reply_err(req, errno);
    return;
  }
  fuse_reply_attr(req, &attr, is_control(ino) ? 0 : kAttrSeconds);
}

timespec wanted_time(const timespec& given, int to_set, int set, int set_now) {
  if (to_set & set_now) return {.tv_sec = 0, .tv_nsec = UTIME_NOW};
  if (to_set & set) return given;
  return {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
}

bool apply_attr(int fd, const fuse_file_info* fi, const struct stat& attr, int to_set) {
  const std::string path = proc_path(fd);
  if ((to_set & FUSE_SET_ATTR_MODE) && ::chmod(path.c_str(), attr.st_mode) != 0) return false;
  if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
    const uid_t uid = (to_set & FUSE_SET_ATTR_UID) ? attr.st_uid : static_cast<uid_t>(-1);
    const gid_t gid = (to_set & FUSE_SET_ATTR_GID) ? attr.st_gid : static_cast<gid_t>(-1);
    if (::fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) return false;
  }
  if (to_set & FUSE_SET_ATTR_SIZE) {
    const int r = fi != nullptr ? ::ftruncate(static_cast<int>(fi->fh), attr.st_size)
                                : ::truncate(path.c_str(), attr.st_size);
    if (r != 0) return false;
  }
  constexpr int kTimes =
      FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  if (to_set & kTimes) {
    const timespec times[2] = {
        wanted_time(attr.st_atim, to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW),
        wanted_time(attr.st_mtim, to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW)};
    if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) return false;
  }
  return true;
}

void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat* attr, int to_set, fuse_file_info* fi) {
  // Truncating the stats file is what a shell does before it writes "reset": allow it.
  if (!is_control(ino) && !apply_attr(fd_of(req, ino), fi, *attr, to_set)) {
    fuse_reply_err(req, errno);
    return;
  }
  on_getattr(req, ino, fi);
}

void on_statfs(fuse_req_t req, fuse_ino_t) {
  struct statvfs s;
  if (::fstatvfs(mount_of(req).root, &s) != 0) {
    fuse_reply_err(req, errno);
    return;
  }
  fuse_reply_statfs(req, &s);
}

// ---- files ----------------------------------------------------------------------------------

void set_open_flags(fuse_file_info* fi, int fd) {
  fi->fh = static_cast<uint64_t>(fd);
  fi->direct_io = 1;
#if FUSE_MINOR_VERSION >= 15
  fi->parallel_direct_writes = 1;
#endif
}

void on_open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  if (ino == kStatsFile) {
    fi->direct_io = 1;
    fuse_reply_open(req, fi);
    return;
  }
  const int flags = (fi->flags & ~(O_NOFOLLOW | O_DIRECT | O_CREAT | O_EXCL)) | O_CLOEXEC;
  const int fd = ::open(proc_path(fd_of(req, ino)).c_str(), flags);
  if (fd < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  set_open_flags(fi, fd);
  fuse_reply_open(req, fi);
}

void on_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* fi) {
  if (refuse_control(req, parent, parent)) return;
  const int flags = (fi->flags & ~(O_NOFOLLOW | O_DIRECT)) | O_CREAT | O_CLOEXEC;
  const int fd = ::openat(fd_of(req, parent), name, flags, mode);
  if (fd < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  fuse_entry_param e;
  if (!make_entry(req, parent, name, &e)) {
    const int saved = errno;
    ::close(fd);
    fuse_reply_err(req, saved);
    return;
  }
  set_open_flags(fi, fd);
  fuse_reply_create(req, &e, fi);
}

void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, fuse_file_info* fi) {
  if (ino == kStatsFile) {
    const std::string json = mount_of(req).meter.json();
    const size_t from = std::min(static_cast<size_t>(offset), json.size());
    fuse_reply_buf(req, json.data() + from, std::min(size, json.size() - from));
    return;
  }
  thread_local std::vector<char> buffer(kMaxRequest);
  if (buffer.size() < size) buffer.resize(size);
  const uint64_t arrived = now_ns();
  const ssize_t n = ::pread(static_cast<int>(fi->fh), buffer.data(), size, offset);
  if (n < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  sleep_until(mount_of(req).meter.book(Kind::kRead, arrived, static_cast<uint64_t>(n)));
  fuse_reply_buf(req, buffer.data(), static_cast<size_t>(n));
}

void on_write(fuse_req_t req, fuse_ino_t ino, const char* data, size_t size, off_t offset,
              fuse_file_info* fi) {
  if (ino == kStatsFile) {
    mount_of(req).meter.reset_counters();
    fuse_reply_write(req, size);
    return;
  }
  const uint64_t arrived = now_ns();
  const ssize_t n = ::pwrite(static_cast<int>(fi->fh), data, size, offset);
  if (n < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  sleep_until(mount_of(req).meter.book(Kind::kWrite, arrived, static_cast<uint64_t>(n)));
  fuse_reply_write(req, static_cast<size_t>(n));
}

void on_flush(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  // close(2) on a duplicate reports what close(2) of the file would.
  const int copy = ino == kStatsFile ? -1 : ::dup(static_cast<int>(fi->fh));
  reply_status(req, ino == kStatsFile ? 0 : (copy < 0 ? -1 : ::close(copy)));
}

void on_release(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  if (ino != kStatsFile) ::close(static_cast<int>(fi->fh));
  fuse_reply_err(req, 0);
}

void on_fsync(fuse_req_t req, fuse_ino_t ino, int data_only, fuse_file_info* fi) {
  if (ino == kStatsFile) {
    fuse_reply_err(req, 0);
    return;
  }
  const int fd = static_cast<int>(fi->fh);
  reply_status(req, data_only ? ::fdatasync(fd) : ::fsync(fd));
}

void on_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset, off_t length,
                  fuse_file_info* fi) {
  if (is_control(ino)) {
    fuse_reply_err(req, EOPNOTSUPP);
    return;
  }
  reply_status(req, ::fallocate(static_cast<int>(fi->fh), mode, offset, length));
}

void on_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence, fuse_file_info* fi) {
  // Only SEEK_DATA and SEEK_HOLE come here; the kernel answers the others itself.
  const off_t at = is_control(ino) ? -1 : ::lseek(static_cast<int>(fi->fh), offset, whence);
  if (at < 0) {
    fuse_reply_err(req, is_control(ino) ? ENXIO : errno);
    return;
  }
  fuse_reply_lseek(req, at);
}

// ---- directories ----------------------------------------------------------------------------

void on_opendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  if (is_control(ino)) {
    fuse_reply_err(req, EACCES);
    return;
  }
  const int fd = ::openat(fd_of(req, ino), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* dir = fd < 0 ? nullptr : ::fdopendir(fd);
  if (dir == nullptr) {
    const int saved = errno;
    if (fd >= 0) ::close(fd);
    fuse_reply_err(req, saved);
    return;
  }
  fi->fh = reinterpret_cast<uint64_t>(dir);
  fuse_reply_open(req, fi);
}

void on_readdir(fuse_req_t req, fuse_ino_t, size_t size, off_t offset, fuse_file_info* fi) {
  DIR* dir = reinterpret_cast<DIR*>(fi->fh);
  ::seekdir(dir, offset);
  std::vector<char> buffer(size);
  size_t used = 0;
  while (const dirent* entry = ::readdir(dir)) {
    struct stat attr{};
    attr.st_ino = entry->d_ino;
    attr.st_mode = static_cast<mode_t>(entry->d_type) << 12;
    const size_t n = fuse_add_direntry(req, buffer.data() + used, size - used, entry->d_name, &attr,
                                       ::telldir(dir));
    if (n > size - used) break;  // does not fit: the kernel asks again from the last offset
    used += n;
  }
  fuse_reply_buf(req, buffer.data(), used);
}

void on_releasedir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  ::closedir(reinterpret_cast<DIR*>(fi->fh));
  fuse_reply_err(req, 0);
}

void on_init(void*, fuse_conn_info* conn) {
  conn->max_write = kMaxRequest;
  conn->max_read = kMaxRequest;
  conn->want &= ~static_cast<unsigned>(FUSE_CAP_WRITEBACK_CACHE);
}

}  // namespace

// flock, POSIX locks and access are absent on purpose: the kernel then does them itself, which is
// exact as long as there is one mount.
fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops{};
  ops.init = on_init;
  ops.lookup = on_lookup;
  ops.forget = on_forget;
  ops.forget_multi = on_forget_multi;
  ops.getattr = on_getattr;
  ops.setattr = on_setattr;
  ops.readlink = on_readlink;
  ops.mkdir = on_mkdir;
  ops.unlink = on_unlink;
  ops.rmdir = on_rmdir;
  ops.symlink = on_symlink;
  ops.rename = on_rename;
  ops.link = on_link;
  ops.open = on_open;
  ops.create = on_create;
  ops.read = on_read;
  ops.write = on_write;
  ops.flush = on_flush;
  ops.release = on_release;
  ops.fsync = on_fsync;
  ops.opendir = on_opendir;
  ops.readdir = on_readdir;
  ops.releasedir = on_releasedir;
  ops.statfs = on_statfs;
  ops.fallocate = on_fallocate;
  ops.lseek = on_lseek;
  return ops;
}

}  // namespace tidelane::throttle
