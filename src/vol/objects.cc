#include "vol/objects.h"

#include "base/counters.h"
#include "vol/control.h"
#include "vol/filtered_reads.h"
#include "vol/find_file.h"
#include "vol/lending.h"
#include "vol/property_lists.h"
#include "vol/sieve_choice.h"
#include "vol/tracked_call.h"

namespace tidelane::vol {

namespace {

// A transfer list may say when the files that are written with it are stored.
void Steer(Instance& instance, size_t count, void* datasets[], const Transfer& transfer) {
  if (!transfer.paused.has_value() && !transfer.delay_us.has_value()) return;
  for (size_t i = 0; i < count; ++i) {
    const std::shared_ptr<File> file = FileOf(instance, datasets[i], H5I_DATASET);
    if (file == nullptr) continue;
    if (transfer.delay_us.has_value()) file->SetDelay(*transfer.delay_us);
    if (transfer.paused.has_value()) file->SetPaused(*transfer.paused);
  }
}

}  // namespace

herr_t AttributeSpecific(Instance& instance, void* object, const H5VL_loc_params_t* location,
                         H5VL_attr_specific_args_t* args, hid_t dxpl, void** request) {
  const auto native = instance.hdf5().native().attr_cls.specific;
  if (args->op_type == H5VL_ATTR_EXISTS) *args->args.exists.exists = false;
  const bool changes = args->op_type != H5VL_ATTR_EXISTS && args->op_type != H5VL_ATTR_ITER;
  if (request == nullptr && changes && !MayChange(instance, object, location->obj_type)) return -1;
  if (request == nullptr || !changes) return native(object, location, args, dxpl, nullptr);
  TrackedCall call(instance, Effect::kWrite, request);
  const herr_t result = native(object, location, args, dxpl, nullptr);
  call.Finish(result >= 0);
  return result;
}

void* DatasetCreate(Instance& instance, void* object, const H5VL_loc_params_t* location,
                    const char* name, hid_t lcpl, hid_t type, hid_t space, hid_t dcpl, hid_t dapl,
                    hid_t dxpl, void** request) {
  h5::Library& hdf5 = instance.hdf5();
  const auto native = hdf5.native().dataset_cls.create;
  if (request == nullptr && !MayChange(instance, object, location->obj_type)) return nullptr;
  if (hdf5.Pget_external_count(dcpl) > 0) Count(Fallback::kExternalRaw);
  TrackedCall call(instance, Effect::kWrite, request);
  void* dataset = native(object, location, name, lcpl, type, space, dcpl, dapl, dxpl, nullptr);
  call.Finish(dataset != nullptr);
  return dataset;
}

herr_t DatasetWrite(Instance& instance, size_t count, void* datasets[], hid_t memory_types[],
                    hid_t memory_spaces[], hid_t file_spaces[], hid_t dxpl, const void* buffers[],
                    void** request) {
  const auto native = instance.hdf5().native().dataset_cls.write;
  const Transfer transfer = TransferOf(instance, dxpl);
  dxpl = ChooseSieve(instance, count, datasets, memory_types, file_spaces, dxpl);
  Steer(instance, count, datasets, transfer);
  const Changing changing(instance);
  if (request == nullptr) {
    for (size_t i = 0; i < count; ++i) {
      if (!MayChange(instance, datasets[i], H5I_DATASET)) return -1;
    }
    if (!transfer.synchronous) {
      return native(count, datasets, memory_types, memory_spaces, file_spaces, dxpl, buffers,
                    nullptr);
    }
  }
  TrackedCall call(instance, request == nullptr ? Effect::kDataNow : Effect::kData, request);
  if (request != nullptr && count == 1) {
    const Writing writing{datasets[0], memory_types[0], memory_spaces[0], file_spaces[0],
                          buffers[0]};
    const std::span<const std::byte> lent = BufferToLend(instance, writing, transfer);
    if (!lent.empty()) call.scope().Lend(lent.data(), lent.size());
  }
  const herr_t result =
      native(count, datasets, memory_types, memory_spaces, file_spaces, dxpl, buffers, nullptr);
  call.Finish(result >= 0);
  return result;
}

herr_t DatasetRead(Instance& instance, size_t count, void* datasets[], hid_t memory_types[],
                   hid_t memory_spaces[], hid_t file_spaces[], hid_t dxpl, void* buffers[],
                   void** request) {
  if (count == 1 && request == nullptr) {
    const Reading reading{datasets[0], memory_types[0], memory_spaces[0], file_spaces[0],
                          dxpl,        buffers[0]};
    if (ReadFiltered(instance, reading)) return 0;
  }
  return instance.hdf5().native().dataset_cls.read(count, datasets, memory_types, memory_spaces,
                                                   file_spaces, dxpl, buffers, request);
}

herr_t DatasetClose(Instance& instance, void* dataset, hid_t dxpl, void** request) {
  ForgetSieve(instance, dataset);
  ForgetFiltered(instance, dataset);
  const auto native = instance.hdf5().native().dataset_cls.close;
  if (RunsPlain(Effect::kRelease, request)) return native(dataset, dxpl, request);
  TrackedCall call(instance, Effect::kRelease, request);
  const herr_t result = native(dataset, dxpl, request);
  call.Finish(result >= 0);
  return result;
}

// Only writing a chunk changes anything; what else there is asks, and may flush the chunk cache.
herr_t DatasetOptional(Instance& instance, void* dataset, H5VL_optional_args_t* args, hid_t dxpl,
                       void** request) {
  if (IsOurs(instance, H5I_DATASET, args->op_type)) {
    return Operate(instance, dataset, H5I_DATASET, *args);
  }
  const auto native = instance.hdf5().native().dataset_cls.optional;
  const Changing changing(instance);
  if (request == nullptr) {
    const bool changes = args->op_type == H5VL_NATIVE_DATASET_CHUNK_WRITE;
    if (changes && !MayChange(instance, dataset, H5I_DATASET)) return -1;
    return native(dataset, args, dxpl, nullptr);
  }
  TrackedCall call(instance, Effect::kWrite, request);
  const herr_t result = native(dataset, args, dxpl, nullptr);
  call.Finish(result >= 0);
  return result;
}

}  // namespace tidelane::vol
