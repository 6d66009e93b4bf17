// RiskPolicyTests
