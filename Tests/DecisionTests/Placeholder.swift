import Testing
import RiskDecisions

@Suite struct DecisionPlaceholder {
    @Test func builds() {}
}
