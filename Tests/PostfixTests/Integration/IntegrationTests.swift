// The relay next to programs that a mail server often has: each as a real program, with the
// settings of docs/INTEGRATION.md.

import Foundation
import PostfixHarness
import RelayHarness
import TestSupport
import Testing

private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent()
    .appendingPathComponent("IntegrationCases").path

/// The cases of a program are those with a name that begins with the program's name.
private func cases(_ program: String) -> [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
        .filter { $0.hasPrefix(program) && $0.hasSuffix(".testcase") }.sorted()
}

private func needs(_ program: String, _ package: String) -> any SuiteTrait & TestTrait {
    .enabled(
        if: FileManager.default.isExecutableFile(atPath: program),
        "skipped: \(package) is not installed (make test-tools)")
}

@Suite(.blocking, needsPostfix) struct IntegrationTests {
    @Test func cases_ofEveryProgram_areFound() {
        for program in ["dovecot", "opendkim", "postsrsd", "rspamd", "smarthost"] {
            #expect(!cases(program).isEmpty, "\(program)")
        }
    }

    @Suite(.blocking, needs(OpenDKIM.program, "opendkim")) struct BesideOpenDKIM {
        @Test(arguments: cases("opendkim")) func relay_besideOpenDKIM_passesItsCase(
            _ name: String
        ) throws {
            let failure = try RelayCase.run(name, in: folder, neighbours: [OpenDKIM()]) {
                $0.trustsLoopback = true
            }
            #expect(failure == nil, "\(failure ?? "")")
        }
    }

    @Suite(.blocking, needs(Rspamd.program, "rspamd")) struct BesideRspamd {
        @Test(arguments: cases("rspamd")) func relay_besideRspamd_passesItsCase(
            _ name: String
        ) throws {
            let failure = try RelayCase.run(name, in: folder, neighbours: [Rspamd()]) {
                $0.trustsLoopback = true
                $0.fansOut = true
            }
            #expect(failure == nil, "\(failure ?? "")")
        }
    }

    @Suite(.blocking, needs(PostSRSd.program, "postsrsd")) struct BesidePostSRSd {
        @Test(arguments: cases("postsrsd")) func relay_besidePostSRSd_passesItsCase(
            _ name: String
        ) throws {
            let neighbour = try PostSRSd(excludesRelayDomains: !name.contains("without"))
            let failure = try RelayCase.run(name, in: folder, neighbours: [neighbour])
            #expect(failure == nil, "\(failure ?? "")")
        }
    }

    @Suite(
        .blocking,
        .enabled(
            if: Dovecot.isThere, "skipped: dovecot-lmtpd 2.3 is not installed (make test-tools)"))
    struct BesideDovecot {
        @Test(arguments: cases("dovecot")) func relay_besideDovecot_passesItsCase(
            _ name: String
        ) throws {
            let failure = try RelayCase.run(name, in: folder, neighbours: [Dovecot()])
            #expect(failure == nil, "\(failure ?? "")")
        }
    }

    @Test(arguments: cases("smarthost")) func relay_behindSmarthost_passesItsCase(
        _ name: String
    ) throws {
        let failure = try RelayCase.run(name, in: folder, neighbours: [Smarthost()])
        #expect(failure == nil, "\(failure ?? "")")
    }
}
