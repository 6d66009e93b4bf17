// docs/POLICY-REFERENCE.md shows every signal with its declaration.

import RiskPolicy
import TestSupport
import Testing

@Suite struct StandardSignalTests {
    private static func table(
        _ signals: [StandardSignal], _ meaning: (StandardSignal.Facts) -> String?
    ) -> String {
        let rows = signals.map {
            "| `\($0.rawValue)` | `\($0.facts.type)` | \(meaning($0.facts) ?? "") |\n"
        }
        return "| signal | type | is |\n|---|---|---|\n" + rows.joined()
    }

    @Test func policyDocument_signalsOfDecisions_areThoseDeclared() throws {
        let section = DocumentSection(
            "signals of decisions", by: "StandardSignalTests", in: "POLICY-REFERENCE.md")
        #expect(try section.holds(Self.table(StandardSignal.ofDecisions, \.forDecisions)))
    }

    @Test func policyDocument_signalsOfStatus_areThoseDeclared() throws {
        let section = DocumentSection(
            "signals of the status", by: "StandardSignalTests", in: "POLICY-REFERENCE.md")
        #expect(try section.holds(Self.table(StandardSignal.ofStatus, \.forStatus)))
    }

    @Test func standardSignals_allOfThem_areSuppliedSomewhere() {
        for signal in StandardSignal.allCases {
            #expect(
                signal.facts.forDecisions != nil || signal.facts.forStatus != nil,
                "\(signal.rawValue)")
        }
    }
}
