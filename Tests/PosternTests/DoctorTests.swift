// The doctor's results for given facts, and for a relay domain in the DNS.

import Database
import Doctor
import Foundation
import MailAuth
import Monitoring
import PostfixHarness
import Support
import TestSupport
import Testing

@Suite(.blocking) struct DoctorTests {
    // MARK: Judgement of facts

    private func healthy() -> LocalFacts {
        var facts = LocalFacts()
        facts.databaseMode = 0o600
        facts.databasePath = "/var/lib/postern/postern.db"
        facts.freeOctets = 10 << 30
        facts.socket = "inet:8891@127.0.0.1"
        facts.now = 1_795_000_000
        facts.newestChange = 1_794_999_000
        return facts
    }

    private func verdicts(_ change: (inout LocalFacts) -> Void) -> [String: Check.Verdict] {
        var facts = healthy()
        change(&facts)
        let checks = LocalChecks.judge(facts)
        for check in checks {
            #expect(!check.sentence.isEmpty)
            #expect((check.remedy == nil) == (check.verdict == .ok), "\(check.name)")
        }
        return Dictionary(checks.map { ($0.name.text, $0.verdict) }, uniquingKeysWith: max).filter {
            $0.value != .ok
        }
    }

    @Test func remedy_databaseThatCannotBeUsed_isThatOfTheCause() throws {
        func remedy(
            _ failure: StoreFailure, isOnServer: Bool = true, isFolder: Bool = false
        ) -> String {
            var facts = healthy()
            facts.database = .trouble(failure.message)
            (facts.databaseFailure, facts.isOnServer, facts.isDatabaseFolder) = (
                failure, isOnServer, isFolder
            )
            return LocalChecks.judge(facts).first { $0.name.kind == .database }?.remedy?.text ?? ""
        }
        let remedies = ServerFault.allCases.map {
            remedy(StoreFailure.permanent(.refused, "x").by($0))
        }
        #expect(
            Set(remedies).count == ServerFault.allCases.count
                && !remedies.contains { $0.contains("check that PostgreSQL runs") })
        #expect(
            remedy(.permanent(.unsealing, "x"), isOnServer: false).hasPrefix("name in key_file"))
        #expect(
            remedy(.temporary(.diskFull, "x"), isOnServer: false).hasPrefix(
                "free space on the file system"))
        #expect(remedy(.permanent(.empty, "x")).hasPrefix("look at the name of the database"))
        #expect(
            remedy(.temporary(.unreachable, "x"), isOnServer: false, isFolder: true).hasPrefix(
                "database names a folder"))
    }

    @Test func milter_socketThatOtherMachinesReach_isAWarning() {
        for socket in ["inet:8891@0.0.0.0", "inet:8891@192.0.2.1", "inet:8891@::"] {
            #expect(verdicts { $0.socket = socket } == ["milter": .warning], "\(socket)")
        }
        for socket in [
            "inet:8891@127.0.0.1", "inet:8891@::1", "inet:8891@localhost",
            "unix:/run/postern/milter.sock",
        ] {
            #expect(verdicts { $0.socket = socket } == [:], "\(socket)")
        }
    }

    @Test func database_filesThatOthersReachBesideIt_areNamed() {
        #expect(verdicts { $0.openFiles = ["/d/postern.db-wal"] } == ["database mode": .warning])
        #expect(verdicts { $0.openFolder = "/d" } == ["database mode": .broken])
    }

    @Test func remedy_causeThatIsSeen_isItsOwn() {
        func remedy(_ kind: CheckKind, _ change: (inout LocalFacts) -> Void) -> String? {
            var facts = healthy()
            change(&facts)
            return LocalChecks.judge(facts).first { $0.name.kind == kind && $0.verdict != .ok }?
                .remedy?.text
        }
        let keyFile = remedy(.keyFile) {
            ($0.keyFile, $0.openKeyFile) = (
                .trouble("other users can read it"), "/a b/postern.keys"
            )
        }
        #expect(keyFile == "run chmod 600 '/a b/postern.keys'")
        let missing = remedy(.database) {
            ($0.database, $0.isDatabaseMissing) = (.trouble("cannot be opened"), true)
        }
        #expect(missing?.hasPrefix("look at the path in the key database") == true)
        let other = remedy(.filter) {
            ($0.filter, $0.http) = (.silent, ("127.0.0.1:8890", .trouble("nothing listens there")))
        }
        #expect(other?.contains("ss -ltnp") == true)
        #expect(
            remedy(.configuration) {
                ($0.configuration, $0.configurationFault) = (.trouble("x"), .missing)
            }?.contains("--config")
                == true)
    }

    @Test func serviceUser_whoCannotReadItsFiles_isNamedToRoot() {
        let verdict = verdicts { $0.unreadable = [("/var/lib/postern/postern.keys", "postern")] }
        #expect(verdict == ["service user": .broken])
    }

    @Test func postfix_beforeTheSetUp_isOneThingToDo() {
        var facts = PostfixFacts()
        facts.directory = "/etc/postfix"
        facts.differences = (["smtpd_milters"] + (1...20).map { "parameter\($0)" }).map {
            PostfixFacts.Difference(name: $0, present: "", needed: "x", reason: "y")
        }
        facts.hasHeaderCheck = false
        let checks = PostfixChecks.judge(facts)
        #expect(
            checks.count == 1
                && checks[0].sentence.contains(
                    "smtpd_milters does not name it, and 20 other settings differ")
        )
        facts.differences.removeFirst()
        #expect(PostfixChecks.judge(facts).count == 21, "it is attached, and something was changed")
    }

    @Test func localChecks_healthyMachine_findNothing() {
        #expect(verdicts { _ in }.isEmpty)
        #expect(LocalChecks.judge(healthy()).count == 7)
    }

    @Test func localChecks_eachFault_giveItsVerdict() {
        #expect(verdicts { $0.keyFile = .trouble("x") } == ["key file": .broken])
        #expect(verdicts { $0.database = .trouble("x") } == ["database": .broken])
        #expect(verdicts { $0.pendingMigrations = ["0009-x"] } == ["database": .warning])
        #expect(verdicts { $0.databaseMode = 0o644 } == ["database mode": .warning])
        #expect(verdicts { $0.databaseMode = nil }.isEmpty)
        #expect(verdicts { $0.filter = .trouble("nothing listens") } == ["filter": .broken])
        #expect(verdicts { $0.freeOctets = 100 << 20 } == ["disk": .warning])
        #expect(verdicts { $0.freeOctets = 1 << 20 } == ["disk": .broken])
        #expect(verdicts { $0.freeOctets = nil }.isEmpty)
        #expect(verdicts { $0.databaseElsewhere = .nfs } == ["database disk": .broken])
        #expect(verdicts { $0.now = 1_000_000_000 } == ["clock": .broken])
        #expect(verdicts { $0.newestChange = $0.now + 100 }.isEmpty)
        #expect(verdicts { $0.newestChange = $0.now + 1000 } == ["clock": .broken])
        #expect(verdicts { $0.isClockKept = true }.isEmpty)
        #expect(verdicts { $0.isClockKept = false } == ["clock": .warning])
        #expect(
            verdicts { $0.clockSkew = ClockSkew.complaint([("mx1", 20)]) } == ["clocks": .warning])
        #expect(ClockSkew.complaint([("mx1", 1.9), ("mx2", 0)]) == nil)
        #expect(
            ClockSkew.complaint([("mx1", 1.5), ("mx2", -1.5), ("mx3", 0.2)])?.hasSuffix(
                "mx1 is 1.5 s ahead, mx2 is 1.5 s behind")
                == true)
        #expect(verdicts { $0.damage = [] }.isEmpty)
        #expect(
            verdicts { $0.damage = ["row 3 missing from index x"] } == [
                "database integrity": .broken
            ])
        #expect(verdicts { $0.unchecked = (28 << 30, 4 << 30) }.isEmpty)
        #expect(
            verdicts { $0.policyProblems = ["policy a does not load: x"] } == ["policy": .warning])
        #expect(
            verdicts { $0.http = ("127.0.0.1:8890", .trouble("nothing listens")) } == [
                "http": .broken
            ])
        #expect(verdicts { $0.copies = ("127.0.0.1:8892", .fine) }.isEmpty)
        #expect(
            verdicts { $0.copies = ("127.0.0.1:8892", .trouble("user 1000 listens there")) } == [
                "copies": .broken
            ])
        #expect(verdicts { $0.hasOperatorAddress = false } == ["postmaster": .broken])
        #expect(verdicts { $0.hasUserPage = false } == ["user page": .warning])
        // A part that cannot be read has no effect on the other checks.
        #expect(
            verdicts {
                $0.configuration = .trouble("x")
                $0.filter = .trouble("y")
            } == ["configuration": .broken])
    }

    @Test func postfix_settingsDiffer_isBroken() {
        var facts = PostfixFacts()
        facts.directory = "/etc/postfix"
        #expect(PostfixChecks.judge(facts).map(\.verdict) == [.ok])
        facts.differences = [
            .init(
                name: "internal_mail_filter_classes", present: "", needed: "bounce",
                reason: "without it bounces pass no milter"),
            .init(
                name: "message_size_limit", present: "10240000", needed: "40000000",
                reason: "too small"),
        ]
        facts.hasHeaderCheck = false
        facts.bypasses = [
            "submission/inet has no_milters: mail that arrives there bypasses Postern"
        ]
        facts.conflicts = ["relay.example also stands in mydestination"]
        let checks = PostfixChecks.judge(facts)
        #expect(checks.count == 5)
        #expect(checks.allSatisfy { $0.verdict == .broken && $0.remedy != nil })
        #expect(checks[0].sentence.contains("is empty, not bounce"))
        #expect(checks[0].sentence.contains("an inbox becomes visible"))
        #expect(!checks[1].sentence.contains("an inbox becomes visible"))
        facts.trouble = "postconf was not found"
        #expect(PostfixChecks.judge(facts).map(\.verdict) == [.broken])
    }

    @Test func certificate_expiryAndHostName_areJudged() {
        let now: Int64 = 1_795_000_000
        func verdict(_ state: CertificateFacts.State) -> Check.Verdict {
            CertificateFacts(path: "/etc/ssl/mx.pem", state: state).judge(
                host: "mx.example", now: now
            ).verdict
        }
        #expect(verdict(.valid(until: now + 60 * 86_400, matchesHost: true)) == .ok)
        #expect(verdict(.valid(until: now + 13 * 86_400, matchesHost: true)) == .warning)
        #expect(verdict(.valid(until: now, matchesHost: true)) == .broken)
        #expect(verdict(.valid(until: now + 60 * 86_400, matchesHost: false)) == .warning)
        #expect(verdict(.unreadable("x")) == .broken)
        #expect(verdict(.unknown("x")) == .warning)
        #expect(verdict(.notConfigured) == .warning)
    }

    @Test func doctor_damageOrForeignCertificate_isReported() throws {
        let runner = try CommandRunner.initialised()
        let certificate = try TestCertificate(
            in: runner.folder.path, name: "http", commonName: "elsewhere.example")
        func rows(_ arguments: String...) throws -> [String: (verdict: String, sentence: String)] {
            let result = try runner.run(
                ["doctor", "--json", "--skip", "postfix", "--skip", "probe", "--skip", "outside"]
                    + arguments)
            let rows = try #require(
                try JSONSerialization.jsonObject(with: Data(result.output.utf8))
                    as? [[String: Any]], "\(result.errors)")
            return Dictionary(
                rows.map {
                    (
                        $0["name"] as? String ?? "",
                        ($0["verdict"] as? String ?? "", $0["sentence"] as? String ?? "")
                    )
                },
                uniquingKeysWith: { first, _ in first })
        }
        let healthy = try rows(
            "--set", "http.tls_certificate=\(certificate.certificate)", "--set",
            "http.tls_key=\(certificate.key)", "--set",
            "hostname=localhost.localdomain")
        #expect(healthy["database integrity"]?.verdict == "ok")
        #expect(healthy["policy"]?.verdict == "ok")
        #expect(
            healthy["http certificate"]?.sentence.contains("is not for localhost.localdomain")
                == true, "\(healthy)")
        // Pages of the file are overwritten; pages in its log are already complete.
        for suffix in ["-wal", "-shm"] {
            try? FileManager.default.removeItem(
                atPath: runner.folder.path + "/data/postern.db" + suffix)
        }
        let path = runner.folder.appendingPathComponent("data/postern.db")
        let file = try FileHandle(forUpdating: path)
        let size = try file.seekToEnd()
        // Reading a large file takes minutes: an operator does not wait that long for the doctor,
        // nor systemd for a start.
        try file.truncate(atOffset: 5 << 30)
        #expect(
            try rows()["database integrity"]?.sentence.hasPrefix(
                "not checked: the file has 5120 MiB") == true)
        try file.truncate(atOffset: 1 << 30)
        #expect(try rows()["database integrity"]?.sentence == "the database is intact")
        #expect(
            try runner.run(["config", "check"]).output.contains(
                "not checked: the file has 1024 MiB"))
        try file.truncate(atOffset: size)
        #expect(try runner.run(["config", "check"]).output.contains("the database is intact"))
        for page in stride(from: UInt64(8192), to: size, by: 40_960) {
            try file.seek(toOffset: page)
            try file.write(contentsOf: Data(repeating: 0xAA, count: 2000))
        }
        try file.close()
        let damaged = try rows()
        #expect(
            damaged["database integrity"]?.verdict == "broken"
                || damaged["database"]?.verdict == "broken", "\(damaged)")
    }

    // MARK: From outside

    /// The names of all checks that are not ok, with their verdicts.
    func outside(
        _ runner: CommandRunner, _ zone: [String: Any], _ arguments: String...,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> [String: String] {
        try JSONSerialization.data(withJSONObject: zone).write(
            to: runner.folder.appendingPathComponent("zone.json"))
        try Data(
            "relay_domains: [relay.example]\nlocal_recipients: {dmarc: ops@example.com}\n".utf8
        )
        .write(to: URL(fileURLWithPath: runner.configuration))
        let result = try runner.run(
            [
                "doctor", "--json", "--dns", "zone.json", "--skip", "local", "--skip", "postfix",
                "--skip", "probe", "--set",
                "hostname=mx.relay.example",
            ] + arguments)
        let list = try JSONSerialization.jsonObject(with: Data(result.output.utf8))
        let rows = try #require(
            list as? [[String: Any]], "\(result.errors)", sourceLocation: sourceLocation)
        var found: [String: String] = [:]
        for row in rows where row["verdict"] as? String != "ok" {
            #expect(row["remedy"] != nil)
            found[row["name"] as? String ?? ""] = row["verdict"] as? String
        }
        #expect(
            result.status == (found.values.contains("broken") ? 1 : 0),
            sourceLocation: sourceLocation)
        return found
    }

    /// A relay domain on which every check passes.
    func healthyZone(_ runner: CommandRunner) throws -> [String: Any] {
        var zone: [String: Any] = [
            "mx.relay.example": ["A": ["198.51.100.7"], "TXT": ["v=spf1 a -all"]],
            "7.100.51.198.in-addr.arpa": ["PTR": ["mx.relay.example"]],
            "relay.example": ["MX": [[10, "mx.relay.example"]], "TXT": ["v=spf1 mx -all"]],
            "_dmarc.relay.example": ["TXT": ["v=DMARC1; p=reject; rua=mailto:dmarc@relay.example"]],
        ]
        let records = try #require(
            try runner.json("keys", "dkim", "publish", "--domain", "relay.example")
                as? [[String: Any]])
        for record in records {
            zone[record["name"] as? String ?? ""] = ["TXT": [record["text"] as? String ?? ""]]
        }
        return zone
    }

    @Test func relayDomain_eachWrongRecord_hasItsVerdict() throws {
        let runner = try CommandRunner.initialised()
        let zone = try healthyZone(runner)
        let key = try #require(zone.keys.first { $0.contains("._domainkey.") })
        #expect(try outside(runner, zone).isEmpty)
        func with(_ name: String, _ value: Any?) throws -> [String: String] {
            var changed = zone
            changed[name] = value
            return try outside(runner, changed)
        }
        let apex = "relay.example"
        func records(
            mx: [Any] = [[10, "mx.relay.example"]], spf: String = "v=spf1 mx -all"
        ) -> [String: Any] {
            ["MX": mx, "TXT": [spf]]
        }
        #expect(try with(apex, records(spf: "v=spf1 -all")) == ["spf relay.example": "broken"])
        #expect(try with(apex, records(spf: "v=spf1 +all")) == ["spf relay.example": "broken"])
        #expect(try with(apex, records(spf: "v=spf1 nonsense")) == ["spf relay.example": "broken"])
        #expect(
            try with(apex, records(mx: [[0, ""]], spf: "v=spf1 a:mx.relay.example -all")) == [
                "mx relay.example": "broken"
            ])
        #expect(
            try with(
                apex, records(mx: [[5, "other.example"]], spf: "v=spf1 a:mx.relay.example -all"))
                == [
                    "mx relay.example": "broken"
                ])
        #expect(
            try with(
                apex,
                records(
                    mx: [[10, "mx.relay.example"], [20, "other.example"]],
                    spf: "v=spf1 a:mx.relay.example -all"))
                == ["mx relay.example": "warning"])
        #expect(
            try with(apex, nil) == ["mx relay.example": "broken", "spf relay.example": "broken"])
        #expect(
            try with(apex, ["error": "TIMEOUT"]) == [
                "mx relay.example": "warning", "spf relay.example": "warning",
            ])
        #expect(try with("7.100.51.198.in-addr.arpa", nil) == ["ptr 198.51.100.7": "broken"])
        #expect(
            try with("7.100.51.198.in-addr.arpa", ["PTR": ["host7.provider.example"]]) == [
                "ptr 198.51.100.7": "broken"
            ])
        #expect(
            try with("mx.relay.example", ["A": ["198.51.100.7"]]) == [
                "spf mx.relay.example": "warning"
            ])
        #expect(try with(key, nil) == ["dkim \(key)": "broken"])
        #expect(try with(key, ["error": "SERVFAIL"]) == ["dkim \(key)": "warning"])
        let dmarc = "_dmarc.relay.example"
        #expect(try with(dmarc, nil) == ["dmarc relay.example": "broken"])
        #expect(
            try with(dmarc, ["TXT": ["v=DMARC1; p=reject"]]) == [
                "dmarc reports relay.example": "warning"
            ])
        #expect(
            try with(dmarc, ["TXT": ["v=DMARC1; p=none; rua=mailto:dmarc@relay.example"]]) == [
                "dmarc relay.example": "warning"
            ])
        #expect(
            try with(
                dmarc,
                [
                    "TXT": [
                        "v=DMARC1; p=reject; sp=none; np=quarantine; rua=mailto:dmarc@relay.example"
                    ]
                ])
                == ["dmarc tags relay.example": "warning"])
        #expect(
            try with(
                dmarc, ["TXT": ["v=DMARC1; p=reject; sp=reject; rua=mailto:dmarc@relay.example"]])
                == [:])
        #expect(
            try with(dmarc, ["TXT": ["v=DMARC1; p=reject; rua=mailto:nobody@relay.example"]]) == [
                "dmarc reports relay.example": "broken"
            ])
        #expect(
            try with(dmarc, ["TXT": ["v=DMARC1; p=reject; rua=mailto:us@reports.example"]]) == [
                "dmarc reports relay.example": "warning"
            ])
    }

    @Test func dmarcReports_externalDestination_needConsent() throws {
        let runner = try CommandRunner.initialised()
        var zone = try healthyZone(runner)
        zone["_dmarc.relay.example"] = [
            "TXT": ["v=DMARC1; p=reject; rua=mailto:us@reports.example!10m"]
        ]
        zone["relay.example._report._dmarc.reports.example"] = ["TXT": ["v=DMARC1"]]
        zone["reports.example"] = ["MX": [[10, "mx.reports.example"]]]
        #expect(try outside(runner, zone).isEmpty)
        zone["relay.example._report._dmarc.reports.example"] = nil
        #expect(try outside(runner, zone) == ["dmarc reports relay.example": "warning"])
    }

    @Test func ipOption_otherAddress_isChecked() throws {
        let runner = try CommandRunner.initialised()
        let zone = try healthyZone(runner)
        let found = try outside(runner, zone, "--ip", "203.0.113.9")
        // The addresses of its name receive its mail, independent of the addresses from which it
        // sends.
        #expect(found["mx relay.example"] == nil)
        #expect(found["spf relay.example"] == "broken")
        #expect(found["ptr 203.0.113.9"] == "broken")
        try runner.fail(
            "doctor", "--skip", "local", "--skip", "postfix", "--ip", "nowhere", status: 64,
            saying: "not a valid IP address")
        var nameless = zone
        nameless["mx.relay.example"] = nil
        #expect(try outside(runner, nameless)["address"] == "broken")
    }

    @Test func dkimKey_retiringAndUnpublished_isAWarning() throws {
        let runner = try CommandRunner.initialised()
        let first = try #require(try healthyZone(runner).keys.first { $0.contains("._domainkey.") })
        try runner.succeed("keys", "dkim", "generate", "--selector", "next")
        // Not published yet, and not in use: no fault.
        var zone = try healthyZone(runner)
        zone["next._domainkey.relay.example"] = nil
        #expect(try outside(runner, zone).isEmpty)
        try runner.succeed("keys", "dkim", "activate", "next", "--force")
        #expect(try outside(runner, zone) == ["dkim next._domainkey.relay.example": "broken"])
        zone = try healthyZone(runner)
        zone[first] = nil
        #expect(try outside(runner, zone) == ["dkim \(first)": "warning"])
    }

    @Test func doctor_newInstallation_reportsWhatIsMissing() throws {
        let runner = try CommandRunner.initialised()
        let result = try runner.run([
            "doctor", "--json", "--skip", "postfix", "--skip", "probe", "--skip", "outside",
            "--set",
            "milter.socket=unix:\(runner.folder.path)/none.sock",
        ])
        #expect(result.status == 1)
        let rows = try #require(
            try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
        let verdicts = Dictionary(
            uniqueKeysWithValues: rows.map {
                ($0["name"] as? String ?? "", $0["verdict"] as? String ?? "")
            })
        #expect(verdicts["filter"] == "broken")
        #expect(verdicts["postmaster"] == "broken")
        #expect(verdicts["database"] == "ok")
        #expect(verdicts["key file"] == "ok")
        // Postfix is expected in the folder that the configuration names.
        let elsewhere = try runner.run([
            "doctor", "--skip", "local", "--skip", "probe", "--skip", "outside", "--set",
            "postfix_directory=/nonexistent/postfix",
        ])
        #expect(
            elsewhere.status == 1 && elsewhere.output.contains("/nonexistent/postfix"),
            "\(elsewhere.output)")
        let missing = try CommandRunner().run([
            "doctor", "--skip", "postfix", "--skip", "probe", "--skip", "outside",
        ])
        #expect(missing.status == 1)
        #expect(missing.output.contains("there is no configuration file"))
    }

    /// Without DNS answers, the doctor must not propose to publish A and AAAA records.
    @Test func dns_noAnswer_isReportedOnce() throws {
        let runner = try CommandRunner.initialised()
        // A socket that no program reads: no answer, and no other program can use the port.
        let (socket, port) = try boundSocket()
        defer { close(socket) }
        let result = try runner.run(
            [
                "doctor", "--json", "--skip", "local", "--skip", "postfix", "--skip", "probe",
                "--set",
                "dns.servers=127.0.0.1:\(port)", "--set", "dns.timeout_ms=100", "--set",
                "dns.tries=1",
            ])
        let rows = try #require(
            try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]],
            "\(result.errors)")
        #expect(rows.map { $0["name"] as? String } == ["dns"])
        #expect(
            (rows.first?["sentence"] as? String)?.contains("127.0.0.1:\(port)") == true, "\(rows)")
        #expect(result.status == 1)
    }

    private func boundSocket() throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isBound)
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    @Test func dns_serverFailure_namesTheServer() throws {
        let runner = try CommandRunner.initialised()
        var zone = try healthyZone(runner)
        zone["mx.relay.example"] = ["error": "SERVFAIL"]
        // The host's address is not known: one check reports that, and the checks that need it are
        // left out.
        #expect(try outside(runner, zone) == ["address": "warning"])
        let text = try runner.run(
            [
                "doctor", "--dns", "zone.json", "--skip", "local", "--skip", "postfix", "--skip",
                "probe", "--set",
                "hostname=mx.relay.example",
            ]).output
        #expect(
            text.contains("(asked zone.json)") && !text.contains("publish A and AAAA"), "\(text)")
    }

    /// With a relayhost, SPF and PTR of this host do not count, so they must not be reported as
    /// "ok".
    @Test func relayhost_configured_needsGivenAddress() throws {
        var facts = PostfixFacts()
        facts.relayhost = "[smarthost.example]"
        #expect(PostfixChecks.judge(facts).map(\.verdict) == [.ok])
        let zone = Zone(["mx.relay.example": ["198.51.100.7"]])
        let unknown = try RelayHost.find(
            heloName: "mx.relay.example", given: [], relayhost: facts.relayhost, resolver: zone)
        #expect(
            unknown.presence().verdict == .warning
                && unknown.presence().sentence.contains("[smarthost.example]"))
        #expect(unknown.addresses.isEmpty && unknown.reverse(zone).isEmpty)
        let named = try RelayHost.find(
            heloName: "mx.relay.example", given: ["203.0.113.9"], relayhost: facts.relayhost,
            resolver: zone)
        #expect(
            named.presence().verdict == .ok && named.addresses.map(\.description) == ["203.0.113.9"]
        )
        #expect(named.reverse(zone).isEmpty)
        #expect(
            try RelayHost.find(heloName: "mx.relay.example", given: [], resolver: zone).addresses
                .map(\.description) == [
                    "198.51.100.7"
                ])
    }

    struct Zone: DNSResolver {
        let addresses: [String: [String]]
        init(_ addresses: [String: [String]]) { self.addresses = addresses }
        func query(_ name: String, _ type: DNSRecordType) -> DNSAnswer {
            guard let found = addresses[name], type == .a else { return .nxDomain }
            return .records(found.compactMap { IPAddress($0) }.map { .address($0.octets) })
        }
    }

    @Test func postfix_notRunning_isBroken() {
        var facts = PostfixFacts()
        facts.isRunning = false
        let checks = PostfixChecks.judge(facts)
        #expect(checks.map(\.name.kind) == [.postfixService] && checks.map(\.verdict) == [.broken])
        facts.isRunning = true
        #expect(PostfixChecks.judge(facts).map(\.verdict) == [.ok])
    }

    @Test func service_notRunning_isReportedOnce() {
        #expect(
            verdicts {
                $0.filter = .trouble("nothing listens")
                $0.http = ("127.0.0.1:8890", .trouble("nothing listens"))
            } == ["filter": .broken])
    }

    // MARK: A team's domain

    @Test func sourceCheck_recordsMissing_areReported() throws {
        let runner = try CommandRunner.initialised()
        try runner.succeed("team", "add", "juice", "--name", "Juice")
        try runner.succeed("source", "add", "juice", "app.example")
        func check(
            _ zone: String, _ arguments: String...
        ) throws -> (status: Int32, verdicts: [String: String]) {
            try Data(zone.utf8).write(to: runner.folder.appendingPathComponent("zone.json"))
            let result = try runner.run(
                ["source", "check", "juice"] + arguments + ["--dns", "zone.json", "--json"])
            let rows = try #require(
                try JSONSerialization.jsonObject(with: Data(result.output.utf8))
                    as? [[String: Any]], "\(result.errors)")
            return (
                result.status,
                Dictionary(
                    rows.map { ($0["name"] as? String ?? "", $0["verdict"] as? String ?? "") },
                    uniquingKeysWith: { a, _ in a })
            )
        }
        let bare = try check("{}", "app.example")
        #expect(bare.status == 1)
        #expect(bare.verdicts["forwarding"] == "broken")
        let spf = #"{"app.example": {"TXT": ["v=spf1 ip4:192.0.2.0/28 -all"]}}"#
        #expect(try check(spf, "app.example").verdicts["forwarding"] == "warning")
        #expect(
            try check(spf, "app.example", "--ip", "192.0.2.3").verdicts["spf app.example"] == "ok")
        #expect(
            try check(spf, "app.example", "--ip", "192.0.2.99").verdicts["spf app.example"]
                == "broken")
        // A subdomain is proved by the source that contains it.
        #expect(try check(spf, "mail.app.example").verdicts["forwarding"] == "warning")
        #expect(try check(spf, "other.example").verdicts["registered"] == "broken")
        #expect(
            try check(spf, "app.example", "--selector", "s9").verdicts[
                "dkim s9._domainkey.app.example"] == "broken")
        #expect(
            try check(#"{"app.example": {"TXT": ["v=spf1 +all"]}}"#, "app.example").verdicts[
                "spf app.example"] == "broken")
        #expect(
            try check(#"{"app.example": {"TXT": ["v=spf1 -all", "v=spf1 +all"]}}"#, "app.example")
                .verdicts["spf app.example"]
                == "broken")
        let key =
            #"{"s9._domainkey.app.example": {"TXT": ["v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="]}}"#
        let signed = try check(key, "app.example", "--selector", "s9")
        #expect(signed.status == 0)
        #expect(signed.verdicts["forwarding"] == "ok")
        let testing = key.replacingOccurrences(of: "p=", with: "t=y; p=")
        #expect(
            try check(testing, "app.example", "--selector", "s9").verdicts[
                "dkim s9._domainkey.app.example"] == "broken")
        #expect(try runner.run(["source", "check", "nobody", "app.example"]).status == 66)
        let unanswered = try check(#"{"app.example": {"error": "SERVFAIL"}}"#, "app.example")
        #expect(
            unanswered.status == 0 && unanswered.verdicts["forwarding"] == "warning",
            "such mail waits, and is not refused")
        try runner.fail(
            "source", "check", "juice", "relay.example", status: 65, saying: "is a relay domain")
        try runner.fail(
            "source", "check", "juice", "app.example", "--ip", "192.0.2.1/32", status: 64,
            saying: "is not a valid IP address")
        // A parent's key does not count if the domain's own record requests strict alignment and
        // refusal.
        let parentKey =
            #"{"_dmarc.mail.app.example": {"TXT": ["v=DMARC1; p=reject; adkim=s"]}, "#
            + key.dropFirst()
        #expect(
            try check(parentKey, "mail.app.example", "--selector", "s9").verdicts["forwarding"]
                == "broken")
        let relaxed = #"{"_dmarc.app.example": {"TXT": ["v=DMARC1; p=reject"]}, "# + key.dropFirst()
        #expect(
            try check(relaxed, "mail.app.example", "--selector", "s9").verdicts["forwarding"]
                == "ok")
        // SPF of a paired envelope domain does not count either.
        try runner.succeed("source", "add", "juice", "app.example", "--envelope", "esp.example")
        let paired = #"{"esp.example": {"TXT": ["v=spf1 ip4:192.0.2.0/28 -all"]}}"#
        #expect(try check(paired, "app.example").verdicts["forwarding"] == "warning")
        let refusing =
            #"{"_dmarc.app.example": {"TXT": ["v=DMARC1; p=reject"]}, "# + paired.dropFirst()
        #expect(try check(refusing, "app.example").verdicts["forwarding"] == "broken")
    }

    @Test func operatingDocument_checks_areThoseDeclared() throws {
        let rows = CheckKind.allCases.map(\.facts).map { facts in
            let name = [facts.word, facts.subject].compactMap { $0 }.joined(separator: " ")
            return "| `\(name)` | \(facts.meaning) |\n"
        }
        let table = "| check | what is looked at, and fine |\n|---|---|\n" + rows.joined()
        #expect(
            try DocumentSection("checks", by: "DoctorTests", in: "OPERATING-DOCTOR.md").holds(table)
        )
    }

    @Test func name_kindAndSubject_isTheirWords() {
        #expect(CheckKind.mx.of("relay.example").text == "mx relay.example")
        #expect(CheckKind.keyFile.alone.text == "key file")
        #expect(CheckKind.secretOrFile.of("page.logo").text == "page.logo")
    }

    @Test(arguments: [
        (UInt32(0x6969), NetworkFileSystem?.some(.nfs)), (0xFE53_4D42, .smb), (0xEF53, nil),
        (0x0102_1994, nil),
    ])
    func networkFileSystem_number_isKnown(_ number: UInt32, _ system: NetworkFileSystem?) {
        #expect(NetworkFileSystem(number: number) == system)
    }
}
