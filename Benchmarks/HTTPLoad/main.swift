// http-load: POST requests over kept connections, at a rate that no answer delays or as fast as answers come, and how long each
// took. What is late counts: a request is timed from when it was due, not from when a connection was free for it.
//
// http-load HOST PORT PATH KEY BODY NUMBERS STRIDE CONNECTIONS SECONDS RATE
//   BODY     `{n}` becomes a number from 1 to NUMBERS, times STRIDE, in 16 digits
//   RATE     requests a second, at random moments (Poisson); 0: each connection asks again once it has an answer
//
// Prints a LoadResult as JSON.

import BenchReport
import Foundation

let words = Array(CommandLine.arguments.dropFirst())
guard words.count == 10, let port = UInt16(words[1]), let numbers = UInt64(words[5]), let stride = UInt64(words[6]),
    let connections = Int(words[7]), let seconds = Double(words[8]), let rate = Double(words[9]), numbers > 0, connections > 0
else {
    FileHandle.standardError.write(Data("http-load HOST PORT PATH KEY BODY NUMBERS STRIDE CONNECTIONS SECONDS RATE\n".utf8))
    exit(64)
}
signal(SIGPIPE, SIG_IGN)
do {
    let request = RequestText(host: words[0], path: words[2], key: words[3], body: words[4], numbers: numbers, stride: stride)
    let load = try OpenLoad(
        host: words[0], port: port, request: request, connections: connections, isClosedLoop: rate <= 0)
    let result = try load.run(seconds: seconds, arrivals: rate > 0 ? Arrivals(rate) : nil)
    FileHandle.standardOutput.write(try JSONEncoder().encode(result))
} catch {
    FileHandle.standardError.write(Data("http-load: \(error)\n".utf8))
    exit(1)
}
