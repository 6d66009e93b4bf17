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
        let (rig, _) = try World.anna()
        defer { rig.stop() }
        let healthy = try doctor(rig)
        #expect(healthy.status == 0, "\(healthy.output)")
        try rig.postfix.set(["internal_mail_filter_classes": ""])
        let broken = try doctor(rig)
        #expect(broken.status == 1)
        #expect(broken.output.contains("internal_mail_filter_classes"), "\(broken.output)")
    }
}
