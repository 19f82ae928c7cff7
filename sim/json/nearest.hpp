// Suggestions, under the name by which readers of JSON know them.
#pragma once

#include "libgccl/runtime/nearest.hpp"
