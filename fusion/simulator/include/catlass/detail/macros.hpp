// Takes the place of the library's file of this name: attributes that only the device compiler reads.
#pragma once
#define CATLASS_DEVICE inline
#define CATLASS_HOST_DEVICE inline
#define CATLASS_GLOBAL inline
