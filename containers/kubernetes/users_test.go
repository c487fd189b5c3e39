package kubernetes

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"carma/containers"
)

// serveUsers answers about users: the token "ann's" belongs to ann, who may get pods.
func (c *cluster) serveUsers(mux *http.ServeMux) {
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		if review.Spec.Token == "ann's" {
			review.Status = authenticationv1.TokenReviewStatus{
				Authenticated: true, User: authenticationv1.UserInfo{Username: "ann", UID: "7", Groups: []string{"lab"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}},
				Audiences: c.audiences,
			}
		} else {
			review.Status.Error = "it has\nexpired"
		}
		answer(w, review)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		s, a := review.Spec, review.Spec.ResourceAttributes
		review.Status.Allowed = s.User == "ann" && s.UID == "7" && slices.Equal(s.Groups, []string{"lab"}) && slices.Equal(s.Extra["k"], []string{"v"}) &&
			a.Verb == "get" && a.Resource == "pods" && a.Subresource == "log" && a.Namespace == "a"
		review.Status.Denied = review.Status.Allowed && c.denied
		answer(w, review)
	})
}

// TestReview: a token is whose the cluster says, if it is meant for carma.
func TestReview(t *testing.T) {
	c := newCluster(t)
	d := c.driver(t, Options{})
	defer d.Close()
	who, err := d.Review(t.Context(), "ann's")
	if err != nil || who.Name != "ann" || who.ID != "7" || !slices.Equal(who.Groups, []string{"lab"}) || who.Extra["k"][0] != "v" {
		t.Errorf("%+v, %v", who, err)
	}
	if _, err := d.Review(t.Context(), "other"); !errors.Is(err, containers.ErrToken) || err.Error() != "the token is not valid: it has; expired" {
		t.Errorf("a bad token: %v", err)
	}
	strict := c.driver(t, Options{Audience: "carma"})
	defer strict.Close()
	if _, err := strict.Review(t.Context(), "ann's"); !errors.Is(err, containers.ErrToken) {
		t.Errorf("a token for the apiserver, where carma's are asked for: %v", err)
	}
	c.audiences = []string{"carma"}
	if _, err := strict.Review(t.Context(), "ann's"); err != nil {
		t.Errorf("a token for carma: %v", err)
	}
	for _, code := range []int{http.StatusForbidden, http.StatusServiceUnavailable} {
		c.fault = func(*http.Request) int { return code }
		if _, err := d.Review(t.Context(), "ann's"); !errors.Is(err, containers.ErrUnavailable) || errors.Is(err, containers.ErrToken) {
			t.Errorf("a cluster that answers %d: %v", code, err)
		}
		if _, err := d.Allowed(t.Context(), who, containers.Access{}); !errors.Is(err, containers.ErrUnavailable) {
			t.Errorf("a cluster that answers %d: %v", code, err)
		}
		c.fault = nil
	}
}

// TestAllowed: the cluster is asked with all that it said of a user.
func TestAllowed(t *testing.T) {
	c := newCluster(t)
	d := c.driver(t, Options{})
	defer d.Close()
	who, err := d.Review(t.Context(), "ann's")
	if err != nil {
		t.Fatal(err)
	}
	logs := containers.Access{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "a"}
	if yes, err := d.Allowed(t.Context(), who, logs); !yes || err != nil {
		t.Errorf("%v, %v", yes, err)
	}
	logs.Namespace = "b"
	if yes, err := d.Allowed(t.Context(), who, logs); yes || err != nil {
		t.Errorf("elsewhere: %v, %v", yes, err)
	}
	logs.Namespace, c.denied = "a", true
	if yes, _ := d.Allowed(t.Context(), who, logs); yes {
		t.Error("denied and allowed is denied")
	}
}
