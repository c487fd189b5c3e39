package step

import "carma/estimator/allocator"

// temporary allocates memory that is freed before the next operation.
func (u *usage) temporary(bytes int64, k Kind) error {
	if bytes == 0 {
		return nil
	}
	c, err := u.take(bytes, k)
	u.release(&c)
	return err
}

// chunk is an allocation with its kind of use.
type chunk struct {
	block allocator.Block
	bytes int64
	kind  Kind
	held  bool
}

// usage is the memory in use by kind, and its peak.
type usage struct {
	allocator *allocator.Allocator
	now, peak [kinds]int64
	total     int64
	most      int64
}

// take allocates memory and counts it by kind.
func (u *usage) take(bytes int64, k Kind) (chunk, error) {
	b, err := u.allocator.Alloc(bytes)
	if err != nil {
		return chunk{}, err
	}
	u.now[k] += bytes
	u.total += bytes
	if u.total > u.most {
		u.most, u.peak = u.total, u.now
	}
	return chunk{block: b, bytes: bytes, kind: k, held: true}, nil
}

func (u *usage) release(c *chunk) {
	if !c.held {
		return
	}
	u.allocator.Free(c.block)
	u.now[c.kind] -= c.bytes
	u.total -= c.bytes
	*c = chunk{}
}

func (u *usage) releaseAll(cs []chunk) {
	for i := range cs {
		u.release(&cs[i])
	}
}
