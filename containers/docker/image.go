package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/distribution/reference"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"

	"carma/containers"
)

// images looks up and fetches images.
type images struct{ e *engine }

// Image looks up ref: a name, a digest or an id.
func (im *images) Image(ctx context.Context, ref string) (containers.Image, error) {
	what := fmt.Sprintf("look up image %q", ref)
	// The client inserts ref into a URL path, so it must be a valid reference.
	if _, err := reference.ParseAnyReference(ref); err != nil {
		return containers.Image{}, fmt.Errorf("%s: %w: %w", what, containers.ErrInvalid, err)
	}
	cli, err := im.e.client(ctx)
	if err != nil {
		return containers.Image{}, fmt.Errorf("%s: %w", what, err)
	}
	res, err := cli.ImageInspect(ctx, ref)
	if err != nil {
		return containers.Image{}, im.e.fail(ctx, cli, what, err)
	}
	img := containers.Image{ID: res.ID}
	if res.Config != nil {
		img.Labels, img.User, img.Env = res.Config.Labels, res.Config.User, res.Config.Env
		img.Entrypoint, img.Command = res.Config.Entrypoint, res.Config.Cmd
	}
	return img, nil
}

// Pull fetches ref. The credential is sent to the engine with the request and is not
// stored there.
func (im *images) Pull(ctx context.Context, ref string, by containers.Credential) error {
	what := fmt.Sprintf("pull image %q", ref)
	if _, err := reference.ParseNormalizedNamed(ref); err != nil {
		return fmt.Errorf("%s: %w: %w", what, containers.ErrInvalid, err)
	}
	cli, err := im.e.client(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var how client.ImagePullOptions
	if by != (containers.Credential{}) {
		host, err := containers.RegistryOf(ref)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		how.RegistryAuth, err = authconfig.Encode(registry.AuthConfig{
			Username: by.Username, Password: by.Password, IdentityToken: by.IdentityToken, RegistryToken: by.RegistryToken, ServerAddress: host,
		})
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	res, err := cli.ImagePull(ctx, ref, how)
	if err != nil {
		return im.e.fail(ctx, cli, what, err)
	}
	defer func() { _ = res.Close() }()
	return im.e.fail(ctx, cli, what, res.Wait(ctx))
}

// Import loads the images of a tar file of docker save, and returns their names.
func (im *images) Import(ctx context.Context, tar io.Reader) (names []string, err error) {
	const what = "import images"
	cli, err := im.e.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	res, err := cli.ImageLoad(ctx, tar)
	if err != nil {
		return nil, im.e.fail(ctx, cli, what, err)
	}
	defer func() { _ = res.Close() }()
	for lines := json.NewDecoder(res); ; {
		var line struct{ Stream, Error string }
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return names, im.e.fail(ctx, cli, what, err)
		case line.Error != "":
			return names, fmt.Errorf("%s: %s", what, line.Error)
		}
		if name, ok := strings.CutPrefix(strings.TrimSpace(line.Stream), "Loaded image: "); ok {
			names = append(names, name)
		}
	}
}
