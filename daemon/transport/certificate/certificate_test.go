package certificate

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

const day = 24 * time.Hour

// scene is a pair whose files a test writes, and a clock.
type scene struct {
	*Pair
	t   *testing.T
	dir string
	log logtest.Log
	now time.Time
}

func begin(t *testing.T, from, until time.Duration) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), now: time.Now()}
	files := certtest.Dated(t, s.dir, "c", "first", certtest.Dates{from, until})
	var err error
	s.Pair, err = Load(Config{Listener: "server", CertFile: files.Cert, KeyFile: files.Key,
		Log: slog.New(slog.NewTextHandler(&s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// renew writes other files, and looks two seconds later.
func (s *scene) renew(name string, from, until time.Duration) {
	s.t.Helper()
	certtest.Dated(s.t, s.dir, "c", name, certtest.Dates{from, until})
	s.after(2 * time.Second)
}

func (s *scene) after(d time.Duration) {
	s.now = s.now.Add(d)
	s.Look(s.now)
}

// serves compares the name that a handshake gets, and how often a text was logged.
func (s *scene) serves(want, text string, times int) {
	s.t.Helper()
	got, err := s.TLS().GetCertificate(&tls.ClientHelloInfo{})
	if err != nil || got.Leaf.Subject.CommonName != want {
		s.t.Errorf("serves %v, %v; want %s", got.Leaf.Subject, err, want)
	}
	if n := strings.Count(s.log.String(), text); n != times {
		s.t.Errorf("%q was logged %d times, want %d:\n%s", text, n, times, s.log.String())
	}
}

// TestNeverAWorseOne: a certificate outside its dates takes no good one's place, until the good one has ended or it
// has become good itself.
func TestNeverAWorseOne(t *testing.T) {
	s := begin(t, -day, 30*day)
	s.renew("expired", -2*day, -day)
	s.serves("first", "the old one stays", 1)
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), "expired on") {
		t.Errorf("a reload says %v", err)
	}
	for range 5 {
		s.after(2 * time.Second)
	}
	s.serves("first", "the old one stays", 1)
	if st, _ := s.Stats(); st.Refused == "" {
		t.Error("the page does not say that it is refused")
	}
	s.renew("tomorrow", day, 60*day)
	s.serves("first", "is not valid before", 1)
	s.now = time.Now().Add(25 * time.Hour)
	s.after(0)
	s.serves("tomorrow", "a new TLS certificate is used", 1)
	if st, _ := s.Stats(); st.Refused != "" {
		t.Errorf("%v is still refused", st.Refused)
	}
}

// TestOfTwoBadOnesTheNewer: when the one in force has ended too, what the operator gives is used.
func TestOfTwoBadOnesTheNewer(t *testing.T) {
	s := begin(t, -3*day, -2*day)
	s.after(2 * time.Second)
	s.serves("first", "outside its dates", 1)
	s.renew("also expired", -2*day, -day)
	s.serves("also expired", "a new TLS certificate is used", 1)
	s.renew("good", -day, 30*day)
	s.serves("good", "outside its dates", 2)
	s.after(48 * time.Hour)
	s.serves("good", "outside its dates", 2)
}

// TestAnEndThatIsNear: it is logged once a day for two weeks, then as an error, and no more once it is renewed.
func TestAnEndThatIsNear(t *testing.T) {
	s := begin(t, -day, 15*day)
	s.after(2 * time.Second)
	s.serves("first", "ends soon", 0)
	for range 5 * 24 {
		s.after(time.Hour)
	}
	s.serves("first", "level=WARN", 5)
	s.after(11 * day)
	s.serves("first", "level=ERROR", 1)
	s.renew("second", -day, 90*day)
	s.after(day)
	s.serves("second", "level=ERROR", 1)
}

func TestReload(t *testing.T) {
	s := begin(t, -day, 30*day)
	certtest.New(t, s.dir, "c", "second")
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	s.serves("second", "a new TLS certificate is used", 1)
	if err := os.WriteFile(s.c.CertFile, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), s.c.CertFile) {
		t.Errorf("Reload of a bad pair = %v, want an error that names the file", err)
	}
	s.serves("second", "the old one stays", 1)
	s.renew("third", -day, 30*day)
	s.serves("third", "a new TLS certificate is used", 2)
	if err := os.Remove(s.c.KeyFile); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.after(2 * time.Second)
	}
	s.serves("third", "the old one stays", 2)
}

func TestBadAtStart(t *testing.T) {
	dir := t.TempDir()
	good := certtest.New(t, dir, "c", "first")
	for name, c := range map[string]Config{
		"no key":  {CertFile: good.Cert},
		"no file": {CertFile: filepath.Join(dir, "missing.pem"), KeyFile: good.Key},
		"swapped": {CertFile: good.Key, KeyFile: good.Cert},
	} {
		if _, err := Load(c); err == nil {
			t.Errorf("%s: Load took it", name)
		}
	}
}

// TestNone: a listener without TLS has no certificate.
func TestNone(t *testing.T) {
	var all All
	all.Look(time.Now())
	if err := all.Reload(); err != nil || len(all.Stats()) != 0 {
		t.Errorf("%v, %v", err, all.Stats())
	}
}

// TestManyHandshakes looks from many sides while the files change.
func TestManyHandshakes(t *testing.T) {
	s := begin(t, -day, 30*day)
	done := make(chan bool)
	for range 4 {
		go func() {
			for range 200 {
				s.mu.Lock()
				s.looked = time.Time{}
				s.mu.Unlock()
				_, _ = s.TLS().GetCertificate(nil)
				s.Stats()
			}
			done <- true
		}()
	}
	for range 20 {
		certtest.New(t, s.dir, "c", "again")
		_ = s.Reload()
	}
	for range 4 {
		<-done
	}
}
