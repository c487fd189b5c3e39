// Package allocator simulates PyTorch's caching allocator: given the
// allocations and frees of a training, it tells how much GPU memory the
// process takes.
//
// The rules are those of c10/cuda/CUDACachingAllocator.cpp (PyTorch 1.13 to
// 2.x): requests are rounded up to 512 bytes; a pool for requests up to 1 MiB
// and one for larger ones; the smallest free block that fits is taken; else a
// segment of 2 MiB, 20 MiB or the request rounded up to 2 MiB is asked of the
// driver; what is left of a block is split off; free neighbours merge; a
// segment goes back to the driver only when memory runs out.
package allocator
