package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"carma/containers"
)

// RegistryAuthHeader is the header with the user's credentials for the registries of the
// images that a request names. It is not part of a task and is never stored.
const RegistryAuthHeader = "Carma-Registry-Auth"

// RegistryAuth is [RegistryAuthHeader] as a parameter of a route.
type RegistryAuth struct {
	Value string `header:"Carma-Registry-Auth" doc:"the caller's credentials for the registries of the images: a JSON object of {username, password, identity_token, registry_token} by registry, in base64 for URLs. They are kept in memory until the images are fetched"`
}

// Registries returns the credentials by registry.
func (a RegistryAuth) Registries() (map[string]containers.Credential, error) {
	return DecodeRegistryAuth(a.Value)
}

// EncodeRegistryAuth returns the value of [RegistryAuthHeader]: a JSON object of
// credentials by registry, in base64 for URLs. It is "" if there are none.
func EncodeRegistryAuth(by map[string]containers.Credential) (string, error) {
	if len(by) == 0 {
		return "", nil
	}
	b, err := json.Marshal(by)
	if err != nil {
		return "", err
	}
	return base64.URLEncoding.EncodeToString(b), nil
}

// DecodeRegistryAuth reverses [EncodeRegistryAuth]. Its errors contain nothing of the
// value.
func DecodeRegistryAuth(value string) (map[string]containers.Credential, error) {
	if value == "" {
		return nil, nil
	}
	b, err := base64.URLEncoding.DecodeString(value)
	var by map[string]containers.Credential
	if err != nil || json.Unmarshal(b, &by) != nil {
		return nil, fmt.Errorf(`header %s is not base64 for URLs of {"REGISTRY": {"username": "", "password": ""}}`, RegistryAuthHeader)
	}
	return by, nil
}

// images returns the images of the task and its helpers, without duplicates.
func (s Submit) images() []string {
	if s.Image == "" {
		return nil
	}
	return []string{s.Image}
}

func (s Submission) images() (all []string) {
	for i := range s.Tasks {
		all = append(all, s.Tasks[i].images()...)
	}
	return distinct(all)
}

func (s Suite) images() (all []string) {
	for i := range s.Helpers {
		all = append(all, s.Helpers[i].Container.images()...)
	}
	return distinct(all)
}

func distinct(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}
