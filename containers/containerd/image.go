package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"carma/containers"
)

// fullName expands an image name as Docker does: alpine is
// docker.io/library/alpine:latest. It leaves an image's id unchanged.
func fullName(ref string) (string, error) {
	named, err := reference.ParseAnyReference(ref)
	if err != nil {
		return "", fmt.Errorf("%w: %w", containers.ErrInvalid, err)
	}
	if n, ok := named.(reference.Named); ok {
		return reference.TagNameOnly(n).String(), nil
	}
	return named.String(), nil
}

// find looks an image up by name, or by id.
func (d *Driver) find(ctx context.Context, ref string) (client.Image, error) {
	name, err := fullName(ref)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(name, "sha256:") {
		return d.cli.GetImage(ctx, name)
	}
	all, err := d.cli.ListImages(ctx)
	if err != nil {
		return nil, err
	}
	for _, img := range all {
		if config, err := img.Config(ctx); err == nil && config.Digest.String() == name {
			return img, nil
		}
	}
	return nil, fmt.Errorf("image %s: %w", ref, errdefs.ErrNotFound)
}

// config reads an image's configuration. Its digest is the image's id.
func config(ctx context.Context, img client.Image) (id string, c ocispec.ImageConfig, err error) {
	desc, err := img.Config(ctx)
	if err != nil {
		return "", c, err
	}
	b, err := content.ReadBlob(ctx, img.ContentStore(), desc)
	if err != nil {
		return "", c, err
	}
	var whole ocispec.Image
	if err := json.Unmarshal(b, &whole); err != nil {
		return "", c, fmt.Errorf("image configuration %s: %w", desc.Digest, err)
	}
	return desc.Digest.String(), whole.Config, nil
}

// Image looks up ref: a name, a digest or an id.
func (d *Driver) Image(ctx context.Context, ref string) (containers.Image, error) {
	what := fmt.Sprintf("look up image %q", ref)
	img, err := d.find(ctx, ref)
	if err != nil {
		return containers.Image{}, d.fail(ctx, what, err)
	}
	id, c, err := config(ctx, img)
	if err != nil {
		return containers.Image{}, d.fail(ctx, what, err)
	}
	return containers.Image{ID: id, Labels: c.Labels, User: c.User, Env: c.Env, Entrypoint: c.Entrypoint, Command: c.Cmd}, nil
}

// Pull fetches ref and unpacks it.
func (d *Driver) Pull(ctx context.Context, ref string, by containers.Credential) error {
	what := fmt.Sprintf("pull image %q", ref)
	name, err := fullName(ref)
	if err != nil || strings.HasPrefix(name, "sha256:") {
		return fmt.Errorf("%s: %w: not the name of an image", what, containers.ErrInvalid)
	}
	if _, err := d.Ping(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	_, err = d.cli.Pull(ctx, name, client.WithPullUnpack, client.WithPullSnapshotter(d.opts.Snapshotter), client.WithResolver(resolver(ref, by)))
	err = d.fail(ctx, what, err)
	if errors.Is(err, containers.ErrUnavailable) {
		// Find out what failed, the registry or containerd.
		if _, ping := d.Ping(ctx); ping == nil {
			return fmt.Errorf("%s: %s", what, strings.ReplaceAll(err.Error(), what+": ", ""))
		}
	}
	return err
}

// resolver finds images in registries. Registries on this machine are also tried without
// TLS. The credential is sent only to the image's own registry and its token service.
func resolver(ref string, by containers.Credential) remotes.Resolver {
	own, _ := containers.RegistryOf(ref)
	if own == "docker.io" {
		own = "registry-1.docker.io"
	}
	secret := func(host string) (string, string, error) {
		switch {
		case host != own:
			return "", "", nil
		case by.IdentityToken != "":
			return "", by.IdentityToken, nil
		}
		return by.Username, by.Password, nil
	}
	var header http.Header
	if by.RegistryToken != "" {
		header = http.Header{"Authorization": {"Bearer " + by.RegistryToken}}
	}
	authorizer := docker.NewDockerAuthorizer(docker.WithAuthCreds(secret))
	return docker.NewResolver(docker.ResolverOptions{Headers: header, Hosts: docker.ConfigureDefaultRegistries(
		docker.WithAuthorizer(authorizer), docker.WithPlainHTTP(docker.MatchLocalhost))})
}

// Import loads the images of a tar file (of docker save or of an OCI tool), unpacks them
// and returns their names.
func (d *Driver) Import(ctx context.Context, tar io.Reader) ([]string, error) {
	const what = "import images"
	imgs, err := d.cli.Import(ctx, tar)
	if err != nil {
		return nil, d.fail(ctx, what, err)
	}
	var names []string
	for _, record := range imgs {
		if err := client.NewImage(d.cli, record).Unpack(ctx, d.opts.Snapshotter); err != nil {
			return names, d.fail(ctx, fmt.Sprintf("unpack image %s", record.Name), err)
		}
		names = append(names, familiar(record.Name))
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: %w: the file names no image; save one by its name, not its id", what, containers.ErrInvalid)
	}
	return names, nil
}

// Images lists the images of the namespace, by name.
func (d *Driver) Images(ctx context.Context) ([]containers.StoredImage, error) {
	const what = "list images"
	all, err := d.cli.ListImages(ctx)
	if err != nil {
		return nil, d.fail(ctx, what, err)
	}
	out := make([]containers.StoredImage, 0, len(all))
	for _, img := range all {
		item := containers.StoredImage{Name: familiar(img.Name()), Created: img.Metadata().CreatedAt}
		if item.ID, _, err = config(ctx, img); err != nil {
			continue // the image is for another machine type
		}
		if item.Size, err = img.Size(ctx); err != nil {
			return nil, d.fail(ctx, what, err)
		}
		out = append(out, item)
	}
	slices.SortFunc(out, func(a, b containers.StoredImage) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// RemoveImage deletes an image by name. A missing image is no error.
func (d *Driver) RemoveImage(ctx context.Context, ref string) error {
	what := fmt.Sprintf("remove image %q", ref)
	name, err := fullName(ref)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = d.cli.ImageService().Delete(ctx, name, images.SynchronousDelete())
	if err != nil && !errdefs.IsNotFound(native(err)) {
		return d.fail(ctx, what, err)
	}
	return nil
}

// familiar returns the short form of an image's name.
func familiar(name string) string {
	if named, err := reference.ParseNormalizedNamed(name); err == nil {
		return reference.FamiliarString(named)
	}
	return name
}
