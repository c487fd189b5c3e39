package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"carma/containers"
)

// reviews sends the cluster requests about users.
type reviews struct {
	c        *client
	audience string // as in [Options]
}

// Review asks the cluster which user a token belongs to (TokenReview). It implements
// [containers.Reviewer].
func (r *reviews) Review(ctx context.Context, token string) (containers.Subject, error) {
	const what = "ask the cluster whose a token is"
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if r.audience != "" {
		review.Spec.Audiences = []string{r.audience}
	}
	var told authenticationv1.TokenReview
	if err := r.c.authentication.Post().Resource("tokenreviews").Body(review).Do(ctx).Into(&told); err != nil {
		return containers.Subject{}, unanswered(ctx, what, err)
	}
	s := &told.Status
	switch {
	case !s.Authenticated:
		return containers.Subject{}, fmt.Errorf("%w: %s", containers.ErrToken, containers.CleanMessage(cmp.Or(s.Error, "the cluster does not know it")))
	case s.User.Username == "":
		return containers.Subject{}, fmt.Errorf("%w: the cluster tells no user", containers.ErrToken)
	case r.audience != "" && !slices.Contains(s.Audiences, r.audience):
		// An authenticator without support for audiences returns none. Then the token may be meant
		// for another service.
		return containers.Subject{}, fmt.Errorf("%w: it is not meant for the audience %s", containers.ErrToken, r.audience)
	}
	who := containers.Subject{Name: s.User.Username, ID: s.User.UID, Groups: s.User.Groups}
	for k, v := range s.User.Extra {
		if who.Extra == nil {
			who.Extra = map[string][]string{}
		}
		who.Extra[k] = v
	}
	return who, nil
}

// Allowed asks the cluster whether a user has a permission (SubjectAccessReview).
func (r *reviews) Allowed(ctx context.Context, who containers.Subject, what containers.Access) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Name, UID: who.ID, Groups: who.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: what.Namespace, Verb: what.Verb, Group: what.Group, Resource: what.Resource, Subresource: what.Subresource,
		},
	}}
	for k, v := range who.Extra {
		if review.Spec.Extra == nil {
			review.Spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		review.Spec.Extra[k] = v
	}
	var told authorizationv1.SubjectAccessReview
	if err := r.c.authorization.Post().Resource("subjectaccessreviews").Body(review).Do(ctx).Into(&told); err != nil {
		return false, unanswered(ctx, "ask the cluster what "+who.Name+" may do", err)
	}
	return told.Status.Allowed && !told.Status.Denied, nil
}

// unanswered converts the error of a request about a user. The caller is not at fault if carma
// lacks the right to ask.
func unanswered(ctx context.Context, what string, err error) error {
	if httpCode(err) == http.StatusForbidden || httpCode(err) == http.StatusUnauthorized {
		return fmt.Errorf("%s: %w: carma may not ask; docs/kubernetes.md lists its rights", what, containers.ErrUnavailable)
	}
	return fail(ctx, what, err)
}
