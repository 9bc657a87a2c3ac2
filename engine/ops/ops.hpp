// SPDX-License-Identifier: Apache-2.0
// All differentiable operations. Each checks its arguments, takes memory from the context, calls
// one kernel and, when a gradient is wanted, records how to go back.
#pragma once

#include "engine/ops/conv.hpp"
#include "engine/ops/layout.hpp"
#include "engine/ops/loss.hpp"
#include "engine/ops/norm.hpp"
#include "engine/ops/pointwise.hpp"
#include "engine/ops/pool.hpp"
#include "engine/ops/reduce.hpp"
