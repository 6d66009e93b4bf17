// `postern doctor` on a running installation: healthy as set up, broken as soon as a setting that keeps the inbox is gone.

import Foundation
import PostfixHarness
import RelayHarness
import Testing

@Suite(needsPostfix) struct RelayDoctorTests {
    private func doctor(_ rig: RelayRig) throws -> (status: Int32, output: String) {
        try ManagedProcess.run(
            rig.program,
            ["doctor", "--skip", "outside", "--config-directory", rig.postfix.configuration, "--config", rig.configuration] + rig.settings)
    }

    @Test func aSettingThatWouldLeakIsNamed() throws {
        let (rig, _) = try World.anna(World.options { $0.postfix["smtp_tls_security_level"] = "may" })
        defer { rig.stop() }
        let healthy = try doctor(rig)
        #expect(healthy.status == 0, "\(healthy.output)")
        let settings = [
            ("virtual_mailbox_domains", ""), ("virtual_transport", "virtual"), ("smtpd_milters", ""), ("non_smtpd_milters", ""),
            ("internal_mail_filter_classes", ""), ("milter_default_action", "accept"), ("milter_protocol", "2"),
            ("milter_connect_timeout", "1s"), ("milter_command_timeout", "1s"), ("milter_content_timeout", "1s"), ("soft_bounce", "yes"),
            ("smtpd_discard_ehlo_keywords", ""), ("disable_mime_output_conversion", "no"), ("smtp_line_length_limit", "998"),
            ("smtp_header_checks", ""), ("smtp_tls_security_level", "none"), ("smtpd_soft_error_limit", "10"),
            ("smtpd_hard_error_limit", "20"), ("message_size_limit", "10240000"), ("message_reject_characters", ""),
            ("smtpd_forbid_bare_newline", "no"), ("smtpd_forbid_unauth_pipelining", "no"),
        ]
        for (name, value) in settings {
            let old = try ManagedProcess.run("/usr/sbin/postconf", ["-c", rig.postfix.configuration, "-h", name]).output
            try rig.postfix.set([name: value])
            let broken = try doctor(rig)
            #expect(broken.status == 1)
            let lines = broken.output.split(separator: "\n").filter { $0.hasPrefix("broken") }
            #expect(lines.count == 1 && lines[0].contains(name), "\(name): \(broken.output)")
            try rig.postfix.set([name: old.trimmingCharacters(in: .whitespacesAndNewlines)])
        }
        #expect(try doctor(rig).status == 0)
    }
}
