// Fan-out: a message to several users in one transaction. Each user gets it exactly once, after any
// failure in the middle.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

@Suite(.blocking, needsPostfix) struct RelayFanOutTests {
    /// A relay with users user0, user1… of one team, and their addresses;
    /// copies go through a proxy.
    private struct Fixture {
        let relay: RelayFixture
        let proxy: SMTPProxy
        let addresses: [String]

        init(users: Int, _ change: (inout RelayFixture.Options) -> Void = { _ in }) throws {
            let proxy = try SMTPProxy()
            self.proxy = proxy
            relay = try RelayFixture(
                RelayFixtures.options {
                    $0.fansOut = true
                    $0.fanOutProxy = proxy.port
                    change(&$0)
                })
            proxy.pass(to: relay.fanOutPort)
            try relay.addTeam("juice", name: "The Juice Company", source: RelayFixtures.team)
            var addresses: [String] = []
            var rows = "user,inbox,verified,team,address\n"
            let letters = Array("abcdefghijklmnopqrstuvwxyz")
            for number in 0..<users {
                addresses.append(
                    "fanout\(letters[number / 26])\(letters[number % 26])xx@relay.example")
                rows += "user\(number),user\(number)@home.example,true,juice,\(addresses[number])\n"
            }
            self.addresses = addresses
            let file = relay.folder + "/users.csv"
            try rows.write(toFile: file, atomically: true, encoding: .utf8)
            try relay.run(["import", file, "--trust-verified"])
        }

        func stop() {
            relay.stop()
            proxy.stop()
        }

        /// One transaction, to all users or to the named ones.
        func send(
            _ recipients: [String]? = nil, id: String = "1", xclient: [(String, String)] = []
        ) throws -> SMTPTransactionResult {
            // With a Date, as Postfix would otherwise add another one each time.
            let text =
                "Date: Sat, 21 Nov 2026 12:00:00 +0000\n"
                + RelayFixtures.message(to: "undisclosed-recipients:;", id: "\(id)@juice.example")
            return try relay.postfix.send(
                from: "<bounce@juice.example>", to: (recipients ?? addresses).map { "<\($0)>" },
                message: Array(text.replacingOccurrences(of: "\n", with: "\r\n").utf8),
                xclient: xclient)
        }

        /// The outcome of one message for two users through the port that accepts copies, as a
        /// local user may send it.
        func forge(_ login: String?) throws -> SMTPTransactionResult {
            let identity =
                [
                    ("ADDR", "127.0.0.1"), ("NAME", "mail.juice.example"),
                    ("HELO", "mail.juice.example"),
                ]
                + (login.map { [("LOGIN", $0)] } ?? [])
            return try SMTPClient.send(
                port: relay.fanOutPort, from: "<bounce@juice.example>", to: ["<\(addresses[0])>"],
                message: Array(
                    RelayFixtures.message(to: addresses[0]).replacingOccurrences(
                        of: "\n", with: "\r\n"
                    ).utf8),
                xclient: identity)
        }

        /// Waits until no message is in progress, and returns the recipients of all messages that
        /// arrived.
        func arrivals(_ count: Int) throws -> [String] {
            _ = try relay.sink.wait(for: count)
            try relay.postfix.waitUntilDone()
            return relay.sink.messages.flatMap(\.recipients).sorted()
        }

        /// Exactly these, each once.
        func expectArrivals(
            _ count: Int, _ expected: [String], _ location: SourceLocation = #_sourceLocation
        ) throws {
            let arrived = try arrivals(count)
            #expect(arrived == expected, sourceLocation: location)
        }

        func everybody(_ numbers: [Int]) -> [String] {
            numbers.map { "<user\($0)@home.example>" }.sorted()
        }
    }

    @Test func fanOut_hundredUsers_deliversOneCopyEach() throws {
        let fixture = try Fixture(users: 100)
        defer { fixture.stop() }
        let result = try fixture.send()
        #expect(result.recipients.allSatisfy { $0.code == 250 }, "no recipient is put off")
        #expect(result.data?.code == 250, "\(result)")
        try fixture.expectArrivals(100, fixture.everybody(Array(0..<100)))
        #expect(fixture.proxy.count == 99, "one copy for each further user")
        #expect(
            Set(fixture.relay.sink.messages.map { $0.address("From") }).count == 100,
            "each has reverse addresses of their own")
        #expect(
            Set(fixture.relay.sink.messages.map(\.mailFrom)).count == 100,
            "and a return path of their own")
    }

    @Test func fanOut_killedInTheMiddle_deliversOnceAfterRetry() throws {
        let fixture = try Fixture(users: 12)
        defer { fixture.stop() }
        let relay = fixture.relay
        // Five copies are handed over and recorded. Postern is killed before it begins the sixth.
        fixture.proxy.pass(to: relay.fanOutPort) { number in
            guard number == 6 else { return .pass }
            _ = try? relay.end(SIGKILL)
            return .cut
        }
        let first = try fixture.send()
        #expect(
            first.recipients.allSatisfy { $0.code == 250 } && first.data?.code == 451, "\(first)")
        try fixture.expectArrivals(5, fixture.everybody(Array(1...5)))
        try relay.serve()
        fixture.proxy.pass(to: relay.fanOutPort)
        let second = try fixture.send()
        #expect(second.data?.code == 250, "\(second)")
        try fixture.expectArrivals(12, fixture.everybody(Array(0..<12)))
        #expect(fixture.proxy.count == 6, "what was handed over before is not handed over again")
    }

    @Test(arguments: ["451 4.3.0 not now", "cut"])
    func fanOut_failureInTheMiddle_repeatsWithoutDoubles(_ failure: String) throws {
        let fixture = try Fixture(users: 6)
        defer { fixture.stop() }
        fixture.proxy.pass(to: fixture.relay.fanOutPort) { number in
            number < 3 ? .pass : failure == "cut" ? .cut : .answer(failure)
        }
        #expect(try fixture.send().data?.code == 451)
        try fixture.expectArrivals(2, fixture.everybody([1, 2]))
        fixture.proxy.pass(to: fixture.relay.fanOutPort)
        // The sender may change the order of its recipients, so that the first one already has its
        // copy.
        #expect(try fixture.send(Array(fixture.addresses.reversed())).data?.code == 250)
        // user5 came first this time, and its message is relayed in place.
        try fixture.expectArrivals(6, fixture.everybody(Array(0..<6)))
        // Everything was handed over: a further repetition brings nothing to users who had copies.
        #expect(try fixture.send([fixture.addresses[1], fixture.addresses[2]]).data?.code == 250)
        try fixture.expectArrivals(6, fixture.everybody(Array(0..<6)))
        // Another message is delivered.
        #expect(
            try fixture.send([fixture.addresses[1], fixture.addresses[2]], id: "2").data?.code
                == 250)
        let all = try fixture.arrivals(8)
        #expect(all.count == 8)
    }

    @Test func fanOut_userWithForwardingOff_servesTheOthers() throws {
        let fixture = try Fixture(users: 4)
        defer { fixture.stop() }
        for number in [0, 2] {
            try fixture.relay.run(["address", "off", fixture.addresses[number]])
        }
        // The first one is relayed in place, so its refusal comes first; the other's comes with its
        // copy.
        let first = try fixture.send()
        #expect(first.data?.code == 451, "\(first)")
        // Each refused recipient gets its own transaction, in which the current state applies.
        let second = try fixture.send()
        #expect(
            second.recipients.map(\.code) == [250, 452, 452, 452] && second.data?.code == 550,
            "\(second)")
        #expect(second.data?.enhancedStatus == "5.2.1", "\(second)")
        let third = try fixture.send(fixture.addresses[1...].map(\.self))
        #expect(
            third.recipients.map(\.code) == [250, 250, 250] && third.data?.code == 451, "\(third)")
        let fourth = try fixture.send(fixture.addresses[1...].map(\.self))
        #expect(
            fourth.recipients.map(\.code) == [250, 452, 250] && fourth.data?.code == 250,
            "\(fourth)")
        try fixture.relay.run(["address", "on", fixture.addresses[2]])
        let fifth = try fixture.send([fixture.addresses[2]])
        #expect(fifth.recipients.map(\.code) == [250] && fifth.data?.code == 250, "\(fifth)")
        try fixture.expectArrivals(3, fixture.everybody([1, 2, 3]))
    }

    /// Exchange repeats a deferred message with a transaction for each recipient.
    @Test(arguments: [[3, 2, 0, 1], [0, 1, 2, 3]])
    func refusalAmongSeveral_messageRepeatedOneByOne_arrivesOnce(
        order: [Int]
    ) throws {
        let fixture = try Fixture(users: 4)
        defer { fixture.stop() }
        try fixture.relay.run(["address", "off", fixture.addresses[2]])
        let together = try fixture.send()
        #expect(together.data?.code == 451, "\(together)")
        for number in order {
            let alone = try fixture.send([fixture.addresses[number]])
            let answer =
                alone.recipients.first?.code == 250
                ? alone.data?.code : alone.recipients.first?.code
            #expect(answer == (number == 2 ? 550 : 250), "user \(number): \(alone)")
        }
        try fixture.expectArrivals(3, fixture.everybody([0, 1, 3]))
    }

    @Test func fanOut_copies_useOriginalClientForSPF() throws {
        let fixture = try Fixture(users: 3) {
            $0.zone = #"{"juice.example": {"TXT": ["v=spf1 ip4:192.0.2.77 -all"]}}"#
        }
        defer { fixture.stop() }
        let stranger = try fixture.send()
        #expect(
            stranger.data?.code == 550 && fixture.proxy.count == 0,
            "an unproved message is refused before any copy is made: \(stranger)")
        let client = [
            ("ADDR", "192.0.2.77"), ("NAME", "mail.juice.example"), ("HELO", "mail.juice.example"),
        ]
        #expect(try fixture.send(xclient: client).data?.code == 250)
        try fixture.expectArrivals(3, fixture.everybody([0, 1, 2]))
    }

    /// XCLIENT lets any process on this machine claim to be any client, so SPF of a team would pass
    /// for forged mail.
    @Test(arguments: [nil, "copies", "copies.1795348800.abbbbbbbbbbbbbbbbbbbbbbbbbb"])
    func copyPort_forgedXCLIENT_isRefused(login: String?) throws {
        let fixture = try Fixture(users: 2)
        defer { fixture.stop() }
        let forged = try fixture.forge(login)
        #expect(
            forged.recipients.map(\.code) == [451]
                && forged.recipients[0].enhancedStatus == "4.7.0", "\(forged)")
        #expect(try fixture.send().data?.code == 250)
        try fixture.expectArrivals(2, fixture.everybody([0, 1]))
        let log = fixture.relay.postfix.log
        #expect(
            log.contains("sasl_username=copies."),
            "it is the login by which our own copies are known")
        #expect(
            fixture.relay.sink.messages.allSatisfy {
                !String(decoding: $0.data, as: UTF8.self).contains("copies.1")
            })
    }

    /// If Postfix does not listen there, any user could, and must not get the copies.
    @Test func copyPort_foreignListener_getsNoCopies() throws {
        let port = try FreePort.next()
        let listen = """
            use IO::Socket::INET; $| = 1; $l = IO::Socket::INET->new(LocalAddr => '127.0.0.1:\(port)', Listen => 9, ReuseAddr => 1) or die; print "ready\\n";
            while ($c = $l->accept) { $c->autoflush; print $c "220 thief\\r\\n"; while (<$c>) { print "heard $_";
            print $c (/^EHLO/ ? "250-thief\\r\\n250 XCLIENT NAME ADDR HELO LOGIN\\r\\n" : /^XCLIENT/ ? "220 thief\\r\\n" : "250 ok\\r\\n"); } }
            """
        let thief = try ManagedProcess(
            "/usr/bin/setpriv", ["--reuid=nobody", "--clear-groups", "/usr/bin/perl", "-e", listen])
        defer { thief.end() }
        try thief.waitForLine(containing: "ready")
        let fixture = try Fixture(users: 2) { $0.fanOutProxy = port }
        defer { fixture.stop() }
        let result = try fixture.send()
        #expect(
            result.recipients.map(\.code) == [250, 452] && result.data?.code == 250, "\(result)")
        try fixture.relay.process.waitForLine(
            containing: "listens there, which is not Postfix's user (milter.peers)")
        #expect(
            thief.lines.contains { $0.contains("EHLO") }
                && !thief.lines.contains { $0.contains("XCLIENT") || $0.contains("MAIL") },
            "\(thief.lines)")
        let doctor = try ManagedProcess.run(
            fixture.relay.program,
            [
                "doctor", "--config", fixture.relay.configuration, "--skip", "outside", "--skip",
                "probe", "--skip", "postfix",
            ]
                + fixture.relay.settings)
        #expect(
            doctor.status == 1
                && doctor.output.contains("broken  127.0.0.1:\(port) (fan_out_smtpd): user "),
            "\(doctor.output)")
        try fixture.expectArrivals(1, fixture.everybody([0]))
    }

    /// Other users of the machine must not be able to open a session with the filter and test
    /// clients and messages.
    @Test func milterSocket_localUser_getsNoSession() throws {
        let fixture = try Fixture(users: 1)
        defer { fixture.stop() }
        let path = fixture.relay.socket.dropFirst("unix:".count)
        // The negotiation with which Postfix begins, and the number of octets that come back.
        let ask = """
            use IO::Socket::UNIX; $s = IO::Socket::UNIX->new(Peer => '\(path)') or die "no connection"; $SIG{PIPE} = 'IGNORE';
            syswrite($s, pack('NaNNN', 13, 'O', 6, 0x1FF, 0x1FFFFF)); print sysread($s, $answer, 100) || 0;
            """
        let user = try ManagedProcess.run(
            "/usr/sbin/runuser", ["-u", "nobody", "--", "/usr/bin/perl", "-e", ask])
        #expect(user.output == "0", "\(user.output)")
        let postfix = try ManagedProcess.run(
            "/usr/sbin/runuser", ["-u", "postfix", "--", "/usr/bin/perl", "-e", ask])
        #expect((Int(postfix.output) ?? 0) >= 17, "\(postfix.output)")
        try fixture.relay.process.waitForLine(containing: "which are not Postfix")
        #expect(try fixture.send().data?.code == 250)
    }

    /// After a message to several users, each reply to all reaches the team, causes no bounce and
    /// leaves nothing in the queue.
    @Test func replyAll_toFanOutMessage_reachesTheTeam() throws {
        let fixture = try Fixture(users: 2) { $0.parks = true }
        defer { fixture.stop() }
        let text = RelayFixtures.message(
            to: fixture.addresses.joined(separator: ", ") + ", Help <help@juice.example>",
            id: "1@juice.example")
        #expect(
            try fixture.relay.send(from: "bounce@juice.example", to: fixture.addresses, text).data?
                .code == 250)
        try fixture.expectArrivals(2, fixture.everybody([0, 1]))
        for number in [0, 1] {
            let copy = try fixture.relay.arrival(for: "user\(number)@home.example")
            let to = try #require(copy.value("To"))
            #expect(
                to.contains("(you and 1 other user of this relay)")
                    && !to.contains(fixture.addresses[1 - number].prefix(10)))
            let answered =
                [copy.address("From"), fixture.addresses[number]]
                + to.split { " ,<>()".contains($0) }.map(String.init).filter { $0.contains("=") }
            #expect(answered.count == 3)
            let reply = RelayFixtures.message(
                from: "user\(number)@home.example", to: answered.joined(separator: ", "),
                id: "r\(number)@home.example")
            let result = try fixture.relay.send(
                from: "user\(number)@home.example", to: answered, reply)
            #expect(
                result.recipients.allSatisfy { $0.code == 250 } && result.data?.code == 250,
                "\(result)")
        }
        _ = try fixture.relay.sink.wait(for: 4)
        try fixture.relay.postfix.waitUntilDone()
        #expect(try fixture.relay.postfix.queue().isEmpty)
        let replies = fixture.relay.sink.messages.filter {
            $0.recipients.contains { $0.hasSuffix("@juice.example>") }
        }
        #expect(
            replies.flatMap(\.recipients).sorted() == [
                "<help@juice.example>", "<help@juice.example>", "<news@juice.example>",
                "<news@juice.example>",
            ])
    }

    /// POSTERN_KILLS=N kills N times, and prints the messages that came twice.
    @Test func fanOut_killedRepeatedly_doublesOneCopyAtMost() throws {
        let kills = ProcessInfo.processInfo.environment["POSTERN_KILLS"].flatMap { Int($0) } ?? 2
        let users = 60
        let fixture = try Fixture(users: users)
        defer { fixture.stop() }
        // The time for one copy, so that kills are spread evenly over it, from its beginning to
        // that of the next copy.
        let start = Date()
        #expect(try fixture.send(id: "whole").data?.code == 250)
        let microseconds = Date().timeIntervalSince(start) * 1_000_000 / Double(users)
        _ = try fixture.relay.sink.wait(for: users)
        try fixture.relay.postfix.waitUntilDone()
        var doubled = 0
        for kill in 0..<kills {
            let before = fixture.relay.sink.messages.count
            let pause = useconds_t(microseconds * Double(kill) / Double(kills))
            // After some copies have begun, at a different moment of the next one each time.
            let begun = fixture.proxy.count + 5 + kill * 7 % 40
            let ended = DispatchSemaphore(value: 0)
            Thread.detachNewThread { [relay = fixture.relay, proxy = fixture.proxy] in
                while proxy.count < begun { usleep(300) }
                usleep(pause)
                _ = try? relay.end(SIGKILL)
                ended.signal()
            }
            let first = try fixture.send(id: "kill\(kill)").data?.code
            #expect(first == 451)
            ended.wait()
            try fixture.relay.serve()
            #expect(try fixture.send(id: "kill\(kill)").data?.code == 250)
            _ = try fixture.relay.sink.wait(for: before + users)
            try fixture.relay.postfix.waitUntilDone()
            let arrived = fixture.relay.sink.messages.dropFirst(before).flatMap(\.recipients)
            #expect(Set(arrived) == Set(fixture.everybody(Array(0..<users))), "nobody is left out")
            #expect(
                arrived.count <= users + 1,
                "a kill doubles what is under way in its moment, and no more")
            doubled += arrived.count - users
        }
        print(
            "kills under fan-out: \(kills), spread over \(Int(microseconds)) µs of a copy; copies doubled: \(doubled)"
        )
    }

    @Test func fanOut_copyPortAway_defersTheSecondUser() throws {
        let fixture = try Fixture(users: 2)
        defer { fixture.stop() }
        fixture.proxy.stop()
        let result = try fixture.send()
        #expect(
            result.recipients.map(\.code) == [250, 452] && result.data?.code == 250, "\(result)")
        try fixture.expectArrivals(1, fixture.everybody([0]))
    }
}
