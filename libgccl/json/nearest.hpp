// Suggestions, under the name by which readers of JSON know them.
#pragma once

#include "libgccl/base/nearest.hpp"
