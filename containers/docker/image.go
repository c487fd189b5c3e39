package docker

import (
	"context"
	"fmt"

	"github.com/distribution/reference"
	"github.com/moby/moby/client"

	"carma/containers"
)

// Image looks ref up, which is a name, a digest or an id.
func (d *Driver) Image(ctx context.Context, ref string) (containers.Image, error) {
	what := fmt.Sprintf("look up image %q", ref)
	// The client puts ref into a path: what is not a reference stays out of it.
	if _, err := reference.ParseAnyReference(ref); err != nil {
		return containers.Image{}, fmt.Errorf("%s: %w: %w", what, containers.ErrInvalid, err)
	}
	cli, err := d.client(ctx)
	if err != nil {
		return containers.Image{}, fmt.Errorf("%s: %w", what, err)
	}
	res, err := cli.ImageInspect(ctx, ref)
	if err != nil {
		return containers.Image{}, d.fail(ctx, cli, what, err)
	}
	img := containers.Image{ID: res.ID}
	if res.Config != nil {
		img.Labels, img.User, img.Env = res.Config.Labels, res.Config.User, res.Config.Env
	}
	return img, nil
}

// Pull fetches ref without credentials; an image of a private registry must
// have been pulled by hand.
func (d *Driver) Pull(ctx context.Context, ref string) error {
	what := fmt.Sprintf("pull image %q", ref)
	if _, err := reference.ParseNormalizedNamed(ref); err != nil {
		return fmt.Errorf("%s: %w: %w", what, containers.ErrInvalid, err)
	}
	cli, err := d.client(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	res, err := cli.ImagePull(ctx, ref, client.ImagePullOptions{})
	if err != nil {
		return d.fail(ctx, cli, what, err)
	}
	defer func() { _ = res.Close() }()
	return d.fail(ctx, cli, what, res.Wait(ctx))
}
