// Memory shared between devices is not simulated: using it stops the build.
#pragma once
template <class... Ts>
inline void aclshmemx_mte_put_nbi(Ts...) { static_assert(sizeof...(Ts) == 0, "shmem between devices is not simulated"); }
template <class... Ts>
inline void aclshmemx_mte_get_nbi(Ts...) { static_assert(sizeof...(Ts) == 0, "shmem between devices is not simulated"); }
