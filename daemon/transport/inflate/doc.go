// Package inflate unpacks the bodies of requests. A client names in Content-Encoding how it packed a body: Codex packs
// with zstd by default, others with gzip.
//
// A [Reader] unpacks as it is read, and never holds more than a decoder's window. It tells a body that is no good
// ([ErrCorrupt]) from one whose source has failed, whose own error it returns.
//
// # Bounds
//
// A few bytes can name a gigabyte, which the worker behind the router would keep. So beyond 1 MiB a body may be 100
// times as long as what has come of it ([ErrGrows], TestBombs), and it may be packed once ([ErrTwice]): nobody is known
// to send two codings, and the second one's growth multiplies the first one's. The memory of a decoder is asked for
// before it is taken, by [Memory] (TestRoomOfDecoders).
//
// # What is read
//
// gzip and x-gzip, with any number of members. deflate, in zlib's form as RFC 9110 has it, and bare as some clients
// send it: a zlib head is known by its check bits. zstd, with any number of frames, and windows up to the 8 MiB that
// RFC 9659 allows on the web; br, with windows up to the same; and identity. A body that ends early, or goes on behind
// its end, is corrupt: a reader that passed over the difference would see another request than the next one does. An
// empty body is an empty body.
//
// # Why these libraries
//
// The standard library has no zstd. github.com/klauspost/compress does (BSD licence, pure Go, fuzzed). The tree has it
// already, by fasthttp and Prometheus' client. Its decoder with a concurrency of 1 has no goroutine, so that a pool may
// lose one, and lowmem keeps no more than a window. gzip and deflate stay with the standard library: bodies are small
// and seldom packed, and twice the speed is not worth a second library.
//
// github.com/andybalholm/brotli (MIT licence, pure Go) comes with fasthttp. Its decoder takes the memory of a window at
// once and has no bound but the format's 16 MiB, so a body that declares a larger window than 8 MiB is refused by its
// first byte.
package inflate
