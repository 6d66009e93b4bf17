// Complete sign-ins on the built-in page, with passkeys: whether 200 a second are possible, and the
// duration of one at half of that rate. Each is eight requests of a browser with cookies and of the
// app's backend, from /auth/authorize to the identity token; then the users' page. Browsers,
// authenticators and the service share this machine's cores.

import ArgumentParser
import AsyncHTTPClient
import BenchReport
import BenchStores
import Foundation
import NIOPosix

func fail(_ message: String) -> Never {
    FileHandle.standardError.write(Data((message + "\n").utf8))
    exit(1)
}

struct Options: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "SignInBench",
        abstract: "Measure whole sign-ins by passkey on the built-in page, and the users' page.")

    @Option(help: "Users who sign in.") var users = 1_000
    @Option(help: "Seconds of each measurement.") var seconds = 20
    @Option(help: "Engine of the store.") var engine = Engine.sqlite
    @Option(help: "Accounts of others, in the store beside those who sign in.") var accounts = 0
    @Flag(help: "End with status 1 if a goal is missed by more than the noise.") var check = false

    func validate() throws {
        try requirePositive(["users": users, "seconds": seconds])
    }
}

let options = Options.parseOrExit()
let (users, seconds, engine, accounts) = (
    options.users, options.seconds, options.engine, options.accounts
)
let full = 200
let label = accounts > 0 ? ", \(engine.rawValue), \(accounts) accounts" : ", \(engine.rawValue)"
let size = accounts > 0 ? ".\(engine.rawValue).\(accounts)" : ".\(engine.rawValue)"

print("\(users) users with passkeys are being made…")
let place = try await SignInPlace(engine, users: users, accounts: accounts)
var configuration = HTTPClient.Configuration(
    redirectConfiguration: .disallow, timeout: .init(read: .seconds(30)))
// Browsers do not wait for each other, but with the default of eight connections these would.
configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 256
let client = HTTPClient(
    eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: configuration)
let crowd = Crowd(place, client)

print("warm-up: everyone signs in once, and consents")
let first = await crowd.signIn(perSecond: full / 2, seconds: (users * 2 + full - 1) / full)
if let failure = first.failure { fail("a sign-in failed: \(failure)") }

var report = BenchReport()
for rate in [full, full / 2] {
    let measured = await crowd.signIn(perSecond: rate, seconds: seconds)
    if let failure = measured.failure { fail("a sign-in failed: \(failure)") }
    print(measured.line(rate))
    report.add(BenchResult("signin.\(rate)\(size).rate", measured.rate, "sign-ins/s"))
    report.add("signin.\(rate)\(size)", measured.wholes)
    report.add("signin.\(rate).request\(size)", measured.requests)
    if rate == full {
        report.goal("sign-ins a second\(label)", measured.rate, Double(full) * 0.98, atMost: false)
    } else {
        report.goal(
            "p99 of a whole sign-in at half of that, ms\(label)", measured.wholes.percentile(99),
            100, atMost: true)
        report.goal(
            "p99 of a whole sign-in by p50\(label)",
            measured.wholes.percentile(99) / measured.wholes.percentile(50), 10,
            atMost: true)
    }
}
let pages = await crowd.look(perSecond: 300, seconds: seconds, visitors: 50)
if let failure = pages.failure { fail("a page failed: \(failure)") }
print("pages: \(pages.line(300))")
report.add("portal.300\(size)", pages.wholes)
report.goal("p99 of a page, ms\(label)", pages.wholes.percentile(99), 50, atMost: true)
try await client.shutdown() as Void
place.end()
report.printTable()
try report.write()
exit(options.check && !report.missed.isEmpty ? 1 : 0)
