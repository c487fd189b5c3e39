package containers

import (
	"context"
	"io"
	"time"
)

// Advice is help for people whose engine does not answer.
type Advice struct {
	Service string // systemd unit
	Program string // command that starts it in a terminal
	Package string // Debian package
	Setting string // key of its address in carma's configuration
	Group   string // its members may use the engine; only root may if empty
	Mend    string // the whole fix for an engine that is no service of this machine; start the service if empty
	Images  string // how to bring images into the engine; with carma image if empty
}

// Advised is a driver that knows where its engine should be, and how to fix one
// that does not answer.
type Advised interface {
	Address() string
	Advice() Advice
}

// Importer is a driver that can bring images onto the machine without a registry.
type Importer interface {
	// Import loads the images of a tar file and returns their names. With an
	// error it returns the names loaded before the error. It may be repeated.
	Import(ctx context.Context, tar io.Reader) (names []string, err error)
}

// Aborter is a driver whose Start may take long, because it fetches the image. See
// [WithPlaced] for its report before that.
type Aborter interface {
	// Abort ends a container whose start has not returned. Start then returns, and the
	// container ends without having run. For a container that runs or has ended it does
	// nothing.
	Abort(ctx context.Context, id string) error
}

// ImageStore is a driver for an engine whose own image command is not on every
// machine. Carma's commands for images take its place.
type ImageStore interface {
	Driver
	Importer
	// Images lists the engine's images.
	Images(ctx context.Context) ([]StoredImage, error)
}

// StoredImage is an image of an engine, as people see it.
type StoredImage struct {
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	Size    int64     `json:"size"` // bytes, as stored; compressed images count compressed
	Created time.Time `json:"created"`
}
