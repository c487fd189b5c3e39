package containers

import (
	"context"
	"io"
	"time"
)

// Advice is what people want to know of an engine that does not answer.
type Advice struct {
	Service string // of systemd
	Program string // starts it by hand
	Package string // of Debian
	Setting string // the configuration's key of its address
	Group   string // whose members may use it; empty: only root may
	Images  string // how images come into it; empty: by carma image
}

// Advised is a driver that says where its engine is expected, and what mends it.
type Advised interface {
	Address() string
	Advice() Advice
}

// ImageStore is a driver whose engine has no command of its own for images that
// every machine has.
type ImageStore interface {
	Driver
	// Import takes the images of a tar file and returns their names, also of
	// those before an error.
	Import(ctx context.Context, tar io.Reader) (names []string, err error)
	// Images lists those there are.
	Images(ctx context.Context) ([]StoredImage, error)
}

// StoredImage is an image of an engine, as people see it.
type StoredImage struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	Size    int64     `json:"size"` // bytes, as stored: compressed where it was
	Created time.Time `json:"created"`
}
