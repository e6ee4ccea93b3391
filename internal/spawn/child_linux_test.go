package spawn

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// talk is the two ends of a conversation: a child that is no process, and its socket.
func talk(t *testing.T) (*Child, *os.File) {
	t.Helper()
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return newChild(nil, ours), theirs
}

type message struct {
	Word []byte
	N    int
}

// A request comes as it was sent, any bytes in it, and so does the answer, until the
// starter has no more.
func TestServe(t *testing.T) {
	c, theirs := talk(t)
	done := make(chan error)
	go func() {
		done <- Serve(theirs, func(m message) message { return message{append(m.Word, 0xff, '\n'), m.N + 1} })
	}()
	if n, err := c.Conn.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("hello: %d, %v", n, err)
	}
	for i := range 3 {
		var a message
		if err := c.Ask(message{[]byte("\xfe\n"), i}, &a); err != nil || string(a.Word) != "\xfe\n\xff\n" || a.N != i+1 {
			t.Errorf("%+v, %v", a, err)
		}
	}
	c.End()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A child that dies or talks nonsense is an error that quotes it, not a success; and so
// is every request after that.
func TestNoAnswer(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  `without an answer: ""`,
		"panic: boom\ngoroutine 1":          `without an answer: "panic: boom"`,
		strings.Repeat("endless ", 1<<16/8): `without an answer: "endless`,
		`{"N":7`:                            "without an answer",
		"{\"N\":7}\n":                       "",
	} {
		c, theirs := talk(t)
		go func() {
			theirs.WriteString(text)
			b := make([]byte, 100)
			theirs.Read(b) // the request: what is left unread resets the socket
			theirs.Close()
		}()
		var a message
		err := c.Ask(message{}, &a)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && a.N != 7 {
			t.Errorf("%.20q: %v, %v", text, a, err)
		}
		if again := c.Ask(message{}, &a); err != nil && again != err {
			t.Errorf("%.20q: then %v", text, again)
		}
	}
}

// A deadline ends a request, and with it the conversation: a late answer is not taken
// for the next one's.
func TestLateAnswer(t *testing.T) {
	c, theirs := talk(t)
	c.Conn.SetDeadline(time.Now().Add(10 * time.Millisecond))
	var a message
	if err := c.Ask(message{}, &a); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	theirs.WriteString("{\"N\":7}\n")
	c.Conn.SetDeadline(time.Now().Add(time.Minute))
	if err := c.Ask(message{}, &a); err == nil || a.N != 0 {
		t.Errorf("the next: %v, %v", a, err)
	}
}
