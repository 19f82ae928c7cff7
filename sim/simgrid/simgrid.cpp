#include "sim/engine/workload.hpp"
