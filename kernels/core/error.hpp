// SPDX-License-Identifier: Apache-2.0
// The errors Collar throws. One class for each kind of trouble, because each has its own exit code
// and its own reader: what() says what happened, where, what was expected and, if it helps, what to
// do.
#pragma once

#include <stdexcept>
#include <string>

namespace collar {

/// Base of every error thrown by the library.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// A wrong argument, option or configuration: the caller has to change the call. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// Shapes, data types, layouts or devices of tensors that do not fit together.
class ShapeError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A misuse of automatic differentiation: a second backward, a value changed in place before its
/// use.
class AutogradError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A data set or an image that cannot be used. Exit code 3.
class DataError : public Error {
 public:
  using Error::Error;
};

/// A model or checkpoint file that is missing, damaged or does not fit. Exit code 4.
class FileError : public Error {
 public:
  using Error::Error;
};

/// A loss or gradient that is not finite. Exit code 5.
class NumericsError : public Error {
 public:
  using Error::Error;
};

/// A rank died, fell silent, disagreed or could not be reached. Exit code 6.
class RankLostError : public Error {
 public:
  using Error::Error;
};

/// The device, its memory or a vendor library failed. Exit code 7.
class DeviceError : public Error {
 public:
  using Error::Error;
};

}  // namespace collar
