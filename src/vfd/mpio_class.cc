#include "vfd/mpio_class.h"

#include <sys/statfs.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <linux/magic.h>
#include <new>

#include "base/processors.h"
#include "extent/test_hooks.h"
#include "publish/directory_entry.h"

namespace tidelane::vfd {
namespace {

constexpr H5FD_class_value_t kMpioValue = 7;  // H5_VFD_MPIO
constexpr uint64_t kNotShared[] = {NFS_SUPER_MAGIC, 0xFF534D42 /*CIFS*/, 0xFE534D42 /*SMB2*/};

// There the stripes are MPI-IO's to choose, from hints, when it makes the file.
constexpr uint64_t kLustre = 0x0BD00BD0;

bool IsShared(const struct statfs& found) {
  for (const uint64_t kind : kNotShared) {
    if (static_cast<uint64_t>(found.f_type) == kind) return false;
  }
  return true;
}

}  // namespace

// Where HDF5 2 and 1.14 have it.
H5FD_t* FileOf(void* vfd_handle, hid_t driver) {
  auto* const pub = reinterpret_cast<H5FD_t*>(static_cast<std::byte*>(vfd_handle) - sizeof(H5FD_t));
  if (pub->driver_id != driver || pub->cls == nullptr) return nullptr;
  const H5FD_class_t& driver_class = *pub->cls;
  const bool known = driver_class.value == kMpioValue && driver_class.name != nullptr &&
                     std::strcmp(driver_class.name, "mpio") == 0 && driver_class.ctl != nullptr &&
                     driver_class.write_vector != nullptr && driver_class.read_vector != nullptr &&
                     driver_class.flush != nullptr;
  return known ? pub : nullptr;
}

// MPI-IO's name for a file system may stand before the path.
const char* PathOf(const char* name) {
  constexpr const char kUnix[] = "ufs:";
  if (std::strncmp(name, kUnix, sizeof kUnix - 1) == 0) return name + sizeof kUnix - 1;
  const size_t word = std::strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");
  return name[word] == ':' && word > 1 ? nullptr : name;
}

bool SharedByRanks(const char* path) {
  struct statfs found;
  return path != nullptr && statfs(path, &found) == 0 && IsShared(found);
}

bool AskRanks(H5FD_t* pub, Ranks& ranks) {
  return Ask(pub, H5FD_CTL_GET_MPI_COMMUNICATOR_OPCODE, ranks.communicator) &&
         Ask(pub, H5FD_CTL_GET_MPI_RANK_OPCODE, ranks.rank) &&
         Ask(pub, H5FD_CTL_GET_MPI_SIZE_OPCODE, ranks.count);
}

// HDF5 itself writes only collectively where MPI-IO must be told to sync after each write.
bool HintsForbid(const h5::Mpi& mpi, H5FD_t* pub) {
  hbool_t sync_required = false;
  h5::MpiHandle info;
  if (!Ask(pub, H5FD_CTL_GET_MPI_FILE_SYNC_OPCODE, sync_required)) sync_required = false;
  if (sync_required || !Ask(pub, H5FD_CTL_GET_MPI_INFO_OPCODE, info)) return true;
  return mpi.Hint(info, "direct_write") == "true" || mpi.Hint(info, "romio_no_indep_rw") == "true";
}

// All ranks must see the same file: another node's /tmp is another one. Those of one machine find the same table.
bool AgreeOnOpening(const h5::Mpi& mpi, const Ranks& ranks, OpeningVote& vote) {
  const bool crowded = HasMoreRanksThanProcessors() && !MutationEnabled("ranks_turning");
  const uint64_t mine[] = {vote.able ? 0u : 1u,  vote.inode,           ~vote.inode,
                           vote.table,           ~vote.table,          vote.group,
                           vote.reads ? 1u : 0u, vote.reads ? 0u : 1u, crowded ? 1u : 0u};
  uint64_t all[std::size(mine)] = {};
  if (!mpi.Max(ranks.communicator, mine, all, static_cast<int>(std::size(mine)))) return false;
  vote.same_table = all[3] == ~all[4];
  vote.group = all[5];
  if (all[8] != 0) vote.waits = h5::Mpi::Waits::kSleeping;
  return all[0] == 0 && all[1] == ~all[2] && all[6] + all[7] == 1;
}

bool MayHideMpio(const char* name) try {
  if (PathOf(name) != name) return false;
  DirectoryEntry entry;
  struct statfs found;
  // open(2) has the words for a folder that is not there.
  if (DirectoryEntry::Find(name, true, entry) != 0) return true;
  if (fstatfs(entry.folder.get(), &found) != 0) return false;
  return IsShared(found) && static_cast<uint64_t>(found.f_type) != kLustre;
} catch (const std::bad_alloc&) {  // this rank tells the others
  return false;
}

}  // namespace tidelane::vfd
