// Package pull fetches images from their registries, with the credential of the user who
// asks, and decides who may use an image that was fetched with one.
//
// Everybody may use an image that the registry serves without a credential. If the
// registry requires a credential, only users whose own credential it has accepted may use
// the image. The package stores these users by the image's id. Any other user must
// present a credential, which the registry checks. Everybody may use images that came to
// the machine otherwise, by docker pull or docker load, because every user of the engine
// can use them.
//
// Credentials are kept in memory only, for tasks whose image could not be looked up at
// submission.
package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"carma/containers"
)

// Credentials are a user's credentials by registry; see [containers.RegistryOf].
type Credentials map[string]containers.Credential

// Engine is the container engine with the images.
type Engine interface {
	Image(ctx context.Context, ref string) (containers.Image, error)
	Pull(ctx context.Context, ref string, by containers.Credential) error
}

// Store stores values across restarts. Get returns nil for an unknown key.
type Store interface {
	Put(key string, value []byte) error
	Get(key string) ([]byte, error)
}

// storeKey is the key of the users of images that were fetched with a credential.
const storeKey = "image-users"

// Puller fetches images. Its methods may be called concurrently.
type Puller struct {
	engine Engine
	store  Store

	mu    sync.Mutex
	users map[string][]int // user IDs by the image's id; an image without an entry is for everybody
	kept  map[int64]Credentials
}

// New returns a puller with the stored state.
func New(engine Engine, store Store) (*Puller, error) {
	p := &Puller{engine: engine, store: store, users: map[string][]int{}, kept: map[int64]Credentials{}}
	b, err := store.Get(storeKey)
	if err != nil || b == nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p.users); err != nil {
		return nil, fmt.Errorf("the users of images: %w", err)
	}
	return p, nil
}

// DeniedError means that a user may not use an image.
type DeniedError struct {
	Image, Registry string
	// Err is the registry's error, or nil if there was no request because the user presented
	// no credential.
	Err error
}

func (e *DeniedError) Error() string {
	text := fmt.Sprintf("image %s is private: its registry %s gave it to another user of this server", e.Image, e.Registry)
	if e.Err != nil {
		return fmt.Sprintf("%s, and does not give it to you: %v", text, e.Err)
	}
	return fmt.Sprintf("%s; log in with `docker login %s` and submit again", text, e.Registry)
}

func (e *DeniedError) Unwrap() error { return e.Err }

// MissingError means that an image could not be fetched.
type MissingError struct {
	Registry string
	Shown    bool // a credential was presented
	Err      error
}

func (e *MissingError) Error() string {
	if e.Shown || e.Registry == "" || !refusal(e.Err) {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v; no credential of yours for %s was sent: if the image is private, log in with `docker login %s` and submit again", e.Err, e.Registry, e.Registry)
}

func (e *MissingError) Unwrap() error { return e.Err }

// refusal reports whether a registry refused an image, according to the text of the
// error. Other errors, such as an unknown host name, are not about credentials.
func refusal(err error) bool {
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc([]string{"denied", "authoriz", "authentic", "forbidden", "credential", "does not exist", "not found"},
		func(word string) bool { return strings.Contains(text, word) })
}

// root may use every image, because root may use the engine.
const root = 0

// May reports whether a user may use an image of this machine. by are the credentials for
// the registry, if it has to be asked.
func (p *Puller) May(ctx context.Context, uid int, ref string, img containers.Image, by Credentials) error {
	if !p.closedTo(uid, img.ID) {
		return nil
	}
	registry, err := containers.RegistryOf(ref)
	if err != nil {
		return &DeniedError{Image: ref, Registry: "", Err: fmt.Errorf("name it by its registry, not by its id: %w", err)}
	}
	err = p.Pull(ctx, uid, ref, by)
	switch missing := (*MissingError)(nil); {
	case errors.As(err, &missing) && missing.Shown:
		return &DeniedError{Image: ref, Registry: registry, Err: missing.Err}
	case missing != nil:
		return &DeniedError{Image: ref, Registry: registry}
	case err != nil:
		return err
	}
	now, err := p.engine.Image(ctx, ref)
	if err != nil {
		return err
	}
	if p.closedTo(uid, now.ID) {
		return &DeniedError{Image: ref, Registry: registry}
	}
	return nil
}

// closedTo reports whether a user may not use an image.
func (p *Puller) closedTo(uid int, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	users, private := p.users[id]
	return private && uid != root && !slices.Contains(users, uid)
}

// Restricts reports whether any image of the machine is not for everybody.
func (p *Puller) Restricts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.users) > 0
}

// Pull fetches an image for a user. It tries without a credential first, and if the
// registry refuses, with the credential for this registry. If it fails, and not because
// of the engine, the error is a [*MissingError].
func (p *Puller) Pull(ctx context.Context, uid int, ref string, by Credentials) error {
	before, _ := p.engine.Image(ctx, ref)
	public := p.engine.Pull(ctx, ref, containers.Credential{})
	if public == nil {
		return p.open(ctx, ref)
	}
	if errors.Is(public, containers.ErrUnavailable) || ctx.Err() != nil {
		return public
	}
	registry, err := containers.RegistryOf(ref)
	if err != nil {
		return &MissingError{Err: public}
	}
	own, ok := by[registry]
	if !ok || own == (containers.Credential{}) {
		return &MissingError{Registry: registry, Err: public}
	}
	if err := p.engine.Pull(ctx, ref, own); err != nil {
		if errors.Is(err, containers.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		return &MissingError{Registry: registry, Shown: true, Err: err}
	}
	return p.add(ctx, uid, ref, before.ID)
}

// open records that the registry serves an image without a credential.
func (p *Puller) open(ctx context.Context, ref string) error {
	if !p.Restricts() {
		return nil
	}
	img, err := p.engine.Image(ctx, ref)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, private := p.users[img.ID]; !private {
		return nil
	}
	delete(p.users, img.ID)
	return p.save()
}

// add records that the registry served an image for a user's credential. before is the id
// that the name had on this machine.
func (p *Puller) add(ctx context.Context, uid int, ref, before string) error {
	img, err := p.engine.Image(ctx, ref)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	users, private := p.users[img.ID]
	if !private && img.ID == before || slices.Contains(users, uid) {
		return nil // the image was on this machine before, for everybody
	}
	p.users[img.ID] = append(users, uid)
	return p.save()
}

// save stores the users. The caller holds mu.
func (p *Puller) save() error {
	b, err := json.Marshal(p.users)
	if err != nil {
		return err
	}
	return p.store.Put(storeKey, b)
}

// Keep stores the credentials of tasks whose image is looked up later. open reports
// whether a task has not ended. The credentials of other tasks are dropped.
func (p *Puller) Keep(tasks []int64, by Credentials, open func(task int64) bool) {
	if len(by) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.kept {
		if !open(id) {
			delete(p.kept, id)
		}
	}
	for _, id := range tasks {
		p.kept[id] = by
	}
}

// Of returns the stored credentials of a task.
func (p *Puller) Of(task int64) Credentials {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept[task]
}

// Drop forgets the credentials of a task.
func (p *Puller) Drop(task int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.kept, task)
}

// Check does the same as [Puller.May], but returns nil if the image is not on this
// machine, because the registry decides when the image is fetched.
func (p *Puller) Check(ctx context.Context, uid int, ref string, by Credentials) error {
	if uid == root || !p.Restricts() {
		return nil
	}
	img, err := p.engine.Image(ctx, ref)
	if errors.Is(err, containers.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.May(ctx, uid, ref, img, by)
}
