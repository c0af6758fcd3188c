package format

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// UUID is a 128-bit identifier of a topic, a directory or a process, written as 22 characters of base64url (Kafka's
// Uuid).
type UUID [16]byte

// String is Kafka's text form, 22 characters without padding.
func (u UUID) String() string { return base64.RawURLEncoding.EncodeToString(u[:]) }

// Reserved reports whether u is one of the identifiers 0 to 99 that Kafka never gives out (DirectoryId.reserved): 0
// none or migrating, 1 the metadata topic or an unassigned directory, 2 a lost directory.
func (u UUID) Reserved() bool { return [15]byte(u[:15]) == [15]byte{} && u[15] < 100 }

// ParseUUID reads Kafka's text form; padding is allowed, as by Uuid.fromString. The error is an *Error at position 0
// wrapping ErrValue.
func ParseUUID(s string) (UUID, error) {
	fail := func(want string) (UUID, error) {
		return UUID{}, &Error{What: "UUID", Want: want, Got: strconv.Quote(s), Err: ErrValue}
	}
	digits := strings.TrimSuffix(s, "==")
	if len(digits) != 22 || strings.ContainsAny(digits, "\r\n") {
		return fail("22 characters of base64url")
	}
	var u UUID
	if _, err := base64.RawURLEncoding.Decode(u[:], []byte(digits)); err != nil {
		return fail("22 characters of base64url")
	}
	return u, nil
}
