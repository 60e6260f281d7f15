#include "file/file_context.h"

#include <utility>

namespace tidelane {

FileContext::FileContext(FileEnvironment environment, std::unique_ptr<Device> open,
                         FileIdentity which, std::string name, bool writes, const FileTraits& kind,
                         Whole owner)
    : env(std::move(environment)),
      device(std::move(open)),
      store(env.make_store(device)),
      identity(which),
      path(std::move(name)),
      writable(writes),
      traits(kind),
      costs(env.cost_model, identity.device),
      eof(store->size()),
      lock(device),
      mode(env.config.mode),
      whole(std::move(owner)) {}

}  // namespace tidelane
