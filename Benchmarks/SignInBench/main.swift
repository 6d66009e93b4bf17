// Whole sign-ins on the built-in page, by passkeys, with the store on SQLite: at 200 a second whether they keep up, and at half
// of that how long one takes. Each is eight requests of a browser with cookies and of the app's backend, from /auth/authorize to
// the identity token. Browsers, authenticators and the service share this machine's cores. Exit status 1 where a goal is missed.
//
// swift run -c release SignInBench [users] [seconds]

import AsyncHTTPClient
import BenchReport
import Foundation
import NIOPosix

func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data((message + "\n").utf8))
    exit(1)
}

let users = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 1_000
let seconds = CommandLine.arguments.dropFirst(2).first.flatMap { Int($0) } ?? 20
let full = 200

print("\(users) users with passkeys are being made…")
let place = try await SignInPlace(users: users)
let client = HTTPClient(
    eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
    configuration: HTTPClient.Configuration(redirectConfiguration: .disallow, timeout: .init(read: .seconds(30))))
let crowd = Crowd(place, client)

print("warm-up: everyone signs in once, and consents")
let first = await crowd.signIn(perSecond: full / 2, seconds: users * 2 / full + 1)
if let failure = first.failure { fail("a sign-in failed: \(failure)") }

var report = BenchReport()
for rate in [full, full / 2] {
    let measured = await crowd.signIn(perSecond: rate, seconds: seconds)
    if let failure = measured.failure { fail("a sign-in failed: \(failure)") }
    print(measured.line(rate))
    report.add(BenchResult("signin.\(rate).rate", measured.rate, "sign-ins/s"))
    report.add(BenchResult("signin.\(rate).p99", measured.percentile(0.99, of: measured.wholes), "ms"))
    report.add(BenchResult("signin.\(rate).request.p99", measured.percentile(0.99, of: measured.requests), "ms"))
    if rate == full {
        report.goal("sign-ins a second", measured.rate, Double(full) * 0.98, atMost: false)
    } else {
        report.goal(
            "p99 of a whole sign-in at half of that, ms", measured.percentile(0.99, of: measured.wholes), 100, atMost: true)
    }
}
try await client.shutdown() as Void
place.end()
report.printTable()
try report.write()
exit(report.missed.isEmpty ? 0 : 1)
