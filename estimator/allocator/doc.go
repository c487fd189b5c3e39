// Package allocator simulates PyTorch's caching allocator. From the allocations and frees
// of a training it computes the GPU memory of the process.
//
// The rules come from c10/cuda/CUDACachingAllocator.cpp (PyTorch 1.13 to 2.x):
//
//   - Requests are rounded up to 512 bytes.
//   - There is a pool for requests up to 1 MiB and one for larger requests.
//   - A request gets the smallest free block that fits. The rest of that block is
//     split off.
//   - If no block fits, the driver is asked for a segment of 2 MiB, of 20 MiB, or
//     of the request's size rounded up to 2 MiB.
//   - Free neighbours merge.
//   - A segment goes back to the driver only when memory runs out.
package allocator
