package main

import (
	"context"
	"sync"
	"syscall"
	"time"
)

// memoryEvery is the time between two readings of the processes' memory.
const memoryEvery = 100 * time.Millisecond

// memoryOfGroups is the peak GPU memory of each process group, in bytes, as the
// driver listed its processes.
type memoryOfGroups struct {
	mu    sync.Mutex
	peaks map[int]int64
}

// watchMemory reads the card's processes until the context ends.
func (s *session) watchMemory(ctx context.Context) *memoryOfGroups {
	m := &memoryOfGroups{peaks: map[int]int64{}}
	if s.card == nil {
		return m
	}
	go func() {
		for ctx.Err() == nil {
			if sample, err := s.card.sample(ctx); err == nil {
				now := map[int]int64{}
				for _, p := range sample.Processes {
					if group, err := syscall.Getpgid(p.PID); err == nil {
						now[group] += int64(p.Used)
					}
				}
				m.add(now)
			}
			select {
			case <-ctx.Done():
			case <-time.After(memoryEvery):
			}
		}
	}()
	return m
}

func (m *memoryOfGroups) add(now map[int]int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for group, used := range now {
		m.peaks[group] = max(m.peaks[group], used)
	}
}

// most returns the peak of a group in bytes, or 0 if it was never seen. It forgets the
// group, because its number may be used again.
func (m *memoryOfGroups) most(group int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	peak := m.peaks[group]
	delete(m.peaks, group)
	return peak
}

// room is an amount of memory that is taken and given back.
type room struct {
	size, free int64 // bytes
	places     int
	mu         sync.Mutex
	given      sync.Cond
}

func newRoom(size int64, places int) *room {
	r := &room{size: size, free: size, places: places}
	r.given.L = &r.mu
	return r
}

// take waits until this much memory, and a place, are free. It must not be more
// than the size.
func (r *room) take(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.free < bytes || r.places == 0 {
		r.given.Wait()
	}
	r.free, r.places = r.free-bytes, r.places-1
}

func (r *room) give(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free, r.places = r.free+bytes, r.places+1
	r.given.Signal()
}
