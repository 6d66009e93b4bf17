// The curve of a policy: the share of each kind that needs a check, from each threshold on.

import Decisions
import TestSupport
import Testing

@Suite(.blocking) struct ROCTests {
    @Test func roc_strongerChecksAndMoreRules_comeFirst() {
        var roc = ROC()
        #expect(roc.area == nil && roc.points.isEmpty)
        for (rank, rules, isFraud) in [
            (2, 1, true), (2, 1, true), (1, 2, true), (1, 1, false), (0, 0, true), (0, 0, false),
        ] {
            roc.add(ROC.score(rank: rank, rules: rules), isFraud: isFraud)
        }
        let points = roc.points.map { "\($0.rest) \($0.fraud)" }
        #expect(points == ["0.0 0.0", "0.0 0.5", "0.0 0.75", "0.5 0.75", "1.0 1.0"])
        #expect(roc.area == 0.5 * 0.75 + 0.5 * (0.75 + 1) / 2)
        #expect(ROC.score(rank: 1, rules: 500) < ROC.score(rank: 2, rules: 0))
    }

    @Test func roc_oneKindOnly_hasNoArea() {
        var roc = ROC()
        roc.add(1, isFraud: true)
        #expect(roc.area == nil)
    }

    @Test func roc_sameScores_hasAreaOfHalf() {
        var roc = ROC()
        for score in [0, 5] { for isFraud in [true, false] { roc.add(score, isFraud: isFraud) } }
        #expect(roc.area == 0.5)
    }
}
