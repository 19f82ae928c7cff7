// What a transport may rely on where the library enters it (gccl/backend.h). For assertions.
#pragma once

#include "gccl/backend.h"

namespace gccl {

inline bool sound(const GCCL_Backend_environment& e) { return e.rank < e.size && e.host && e.secret && e.address; }
inline bool sound(const GCCL_Port_spec& s) { return s.rank < s.size && s.channels > 0 && s.node && s.world_rank; }
inline bool sound_send(const GCCL_Transfer& t) { return t.bytes == 0 || t.data; }
inline bool sound_receive(const GCCL_Transfer& t) { return t.bytes == 0 || t.data || (t.consume && t.grain > 0); }

}  // namespace gccl
