#include "libgccl/schedule/lane.hpp"
