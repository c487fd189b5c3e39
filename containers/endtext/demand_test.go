package endtext

import "testing"

func TestDemand(t *testing.T) {
	tests := []struct {
		msg  string
		want int64
	}{
		{"CUDA out of memory. Tried to allocate 1.00 GiB. this process has 2.00 GiB memory in use.", 3 << 30},
		{"CUDA out of memory. Tried to allocate 512 bytes (GPU 0; 1.00 MiB already allocated)", 1<<20 + 512},
		{"CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 1.00 MiB already allocated; 3.00 MiB reserved in total by PyTorch)", 5 << 20},
		{"Tried to allocate 1.00 GiB.", 0},              // the memory it had is missing
		{"this process has 2.00 GiB memory in use", 0},  // the memory it asked for is missing
		{"Tried to allocate lots. this process has", 0}, // no number
		{"Tried to allocate 9999999.00 TiB. this process has 1.00 GiB memory in use", 0},
		{"Tried to allocate 1.2.3 GiB. this process has 1.00 GiB memory in use", 0},
		{"Out of memory allocating 99,999,999,999,999,999,999 bytes (allocated so far: 1,024 bytes", 0},
		{"less than desired GPU memory utilization (0.9, 8.00 GiB). Decrease GPU memory utilization", 8 << 30},
		{"", 0},
	}
	for _, tc := range tests {
		if got, _ := demand(tc.msg); got != tc.want {
			t.Errorf("%q: %d, want %d", tc.msg, got, tc.want)
		}
	}
}

func FuzzDemand(f *testing.F) {
	f.Add("Tried to allocate 2.50 GiB. this process has 9.05 GiB memory in use.")
	f.Add("Tried to allocate 1.00 KB (37.40 GiB reserved in total by PyTorch)")
	f.Add("Tried to allocate . GiB 1 GiB cached")
	f.Fuzz(func(t *testing.T, msg string) {
		if d, n := demand(msg); d < 0 || d > 4*maxMemory || n < 0 || n > maxMemory {
			t.Errorf("demand(%q) = %d", msg, d)
		}
	})
}
