#include "model/learned.h"

namespace tidelane::model {

ModeledRate RateToTell(const IoRate& rate, double bytes, double ranks) {
  ModeledRate told;
  const auto predicted = rate.Predict(bytes, ranks);
  if (!predicted) return told;
  told.samples = rate.weight();
  told.bytes_per_second = bytes / predicted->seconds;
  told.error = predicted->relative_error;
  told.form = Name(predicted->form);
  told.r2 = predicted->r2;
  return told;
}

}  // namespace tidelane::model
