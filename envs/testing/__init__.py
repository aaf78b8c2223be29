"""The contract suite: what every environment of this package promises, as checks that any environment can run.

Write one factory, and bind the test::

    from weightgym.envs.testing import EnvSubject, contract_test

    def subject() -> EnvSubject:
        return EnvSubject(make=MyEnv, gold=lambda task_id: ("a good answer", 0.9), floor=0.0,
                          flags={"profile": ("mine-v1", "mine-v1-e10")}, gym_id="me/MyEnv-v1")

    test_contract = contract_test(subject)

Without pytest, ``check_environment(subject)`` runs the same checks and raises one ``ContractError`` that lists every
failure. A check is skipped for nobody: what a subject leaves out is itself a failure, and the message says what to add.
"""

from weightgym.envs.testing.expect import ContractError
from weightgym.envs.testing.subject import EnvSubject
from weightgym.envs.testing.suite import CHECKS, check_environment, contract_test, failed_checks

__all__ = ["CHECKS", "ContractError", "EnvSubject", "check_environment", "contract_test", "failed_checks"]
