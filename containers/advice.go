package containers

import (
	"context"
	"io"
	"time"
)

// Advice describes how to fix an engine that does not answer.
type Advice struct {
	Service string // systemd unit
	Program string // command that starts it in a terminal
	Package string // Debian package
	Setting string // key of its address in carma's configuration
	Group   string // group whose members may use the engine, or empty if only root may
	Fix     string // the whole fix; if empty, the fix is to start the service
	Images  string // how to load images into the engine; by default with carma image
}

// Advised is a driver that has an [Advice] for its engine.
type Advised interface {
	Address() string
	Advice() Advice
}

// Importer is a driver that can bring images onto the machine without a registry.
type Importer interface {
	// Import loads the images of a tar file and returns their names. With an error it
	// returns the names loaded before the error. Import may be repeated.
	Import(ctx context.Context, tar io.Reader) (names []string, err error)
}

// Aborter is a driver whose Start may take long because Start pulls the image. See
// [WithPlaced] for what Start reports before.
type Aborter interface {
	// Abort ends a container whose start has not returned. Start then returns, and the
	// container ends without having run. Abort does nothing for a container that runs or has
	// ended.
	Abort(ctx context.Context, id string) error
}

// ImageStore is a driver for an engine whose own image command may be missing on a
// machine. carma image takes its place.
type ImageStore interface {
	Driver
	Importer
	// Images lists the engine's images.
	Images(ctx context.Context) ([]StoredImage, error)
}

// StoredImage is an image of an engine, as listed by carma image.
type StoredImage struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	Size    int64     `json:"size"` // stored bytes; compressed images count compressed
	Created time.Time `json:"created"`
}
