// The dtype lists of the kernels' declarations, in the groups of ONNX's schemas.
#pragma once

#define PY_ORT_FLOATS "float32,float64,float16,bfloat16"
#define PY_ORT_SIGNED "int8,int16,int32,int64"
#define PY_ORT_INTEGERS PY_ORT_SIGNED ",uint8,uint16,uint32,uint64"
#define PY_ORT_NUMBERS PY_ORT_FLOATS "," PY_ORT_INTEGERS
#define PY_ORT_SIGNED_NUMBERS PY_ORT_FLOATS "," PY_ORT_SIGNED
#define PY_ORT_INDICES "int32,int64"
#define PY_ORT_FLOAT8 "float8e4m3fn,float8e4m3fnuz,float8e5m2,float8e5m2fnuz"
#define PY_ORT_SUB_BYTE "uint4,int4,float4e2m1,uint2,int2"
