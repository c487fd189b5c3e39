package containers

import (
	"fmt"

	"github.com/distribution/reference"
)

// Credential is a user's login for a registry: a name and a password, or a token. The
// zero value means no login.
type Credential struct {
	Username string `json:"username,omitempty" maxLength:"1000"`
	Password string `json:"password,omitempty" maxLength:"20000"`
	// IdentityToken can be exchanged for a registry token; RegistryToken is a registry
	// token.
	IdentityToken string `json:"identity_token,omitempty" maxLength:"20000"`
	RegistryToken string `json:"registry_token,omitempty" maxLength:"20000"`
}

// String returns a text without the credential, for logs and messages.
func (c Credential) String() string {
	if c == (Credential{}) {
		return "no credential"
	}
	return "a credential"
}

// GoString returns the same text as [Credential.String].
func (c Credential) GoString() string { return c.String() }

// RegistryOf returns the registry of an image's name, for example docker.io, as host or
// host:port. For an image's id, which has no registry, the error wraps [ErrInvalid].
func RegistryOf(image string) (string, error) {
	ref, err := reference.ParseAnyReference(image)
	if err != nil {
		return "", fmt.Errorf("image %q: %w: %w", image, ErrInvalid, err)
	}
	named, ok := ref.(reference.Named)
	if !ok {
		return "", fmt.Errorf("image %q: %w: an id", image, ErrInvalid)
	}
	return reference.Domain(named), nil
}
