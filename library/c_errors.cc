#include "library/c_errors.h"

#include "library/perdura.h"

namespace perdura::library {

std::string& last_error() {
  thread_local std::string message;
  return message;
}

perdura_status failed(perdura_status status, const char* what) noexcept {
  try {
    last_error() = what;
  } catch (...) {
    last_error().clear();
  }
  return status;
}

perdura_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const Refused& error) {
    return failed(PERDURA_REFUSED, error.what());
  } catch (const TimedOut& error) {
    return failed(error.in_doubt() ? PERDURA_IN_DOUBT : PERDURA_TIMED_OUT, error.what());
  } catch (const OptionsDiffer& error) {
    return failed(PERDURA_OPTIONS_DIFFER, error.what());
  } catch (const std::invalid_argument& error) {
    return failed(PERDURA_INVALID, error.what());
  } catch (const std::exception& error) {
    return failed(PERDURA_FAILED, error.what());
  } catch (...) {
    return failed(PERDURA_FAILED, "an exception of no known type");
  }
}

}  // namespace perdura::library
