// Stands in for libnvidia-ml.so.1 where there is no card: runner/gpu/nvml's stand-in as an
// H100, with what NVIDIA's DRA driver asks beyond that. Lines of THIN_GPU say who holds
// how much.
#define NEW 1
#define VERSION "580.159.04"
#define UUID "GPU-5ca1ab1e-0000-4000-8000-000000000001"
#define NAME "NVIDIA H100 80GB HBM3"
#define TOTAL (81559ull << 20)
#include "../../../runner/gpu/nvml/testdata/driver.c"

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t d, unsigned int *n) { *n = 0; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t d, unsigned int *n) { *n = 0; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t d, unsigned int *is) { *is = 0; return NVML_SUCCESS; }
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *v) { *v = 13000; return NVML_SUCCESS; }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13000; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t d, nvmlBrandType_t *b) { *b = NVML_BRAND_NVIDIA; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t d, nvmlDeviceArchitecture_t *a) { *a = NVML_DEVICE_ARCH_HOPPER; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t d, int *major, int *minor) { *major = 9, *minor = 0; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t d, unsigned int p, nvmlGpuInstanceProfileInfo_t *i) { return NVML_ERROR_NOT_SUPPORTED; }
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) {
    memset(p, 0, sizeof *p);
    strcpy(p->busId, "00000000:00:05.0"), strcpy(p->busIdLegacy, "0000:00:05.0");
    p->device = 5;
    return NVML_SUCCESS;
}
