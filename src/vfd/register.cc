#include "vfd/register.h"

#include "vfd/driver.h"
#include "vfd/mpio.h"

namespace tidelane::vfd {

void RegisterDrivers() {
  h5::RegisterDriver(kSerialDriver);
  h5::RegisterParallelDriver(kMpioDriver);
}

}  // namespace tidelane::vfd
