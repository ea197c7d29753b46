"""The site's own user model."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.contrib.auth.models import (
    AbstractBaseUser,
    BaseUserManager,
    PermissionsMixin,
)
from django.db import models


class UserManager(BaseUserManager["User"]):
    def create_user(
        self,
        email: str,
        password: str | None,
        *,
        country: str,
        **more: Any,
    ) -> User:
        user = self.model(email=self.normalize_email(email), country=country, **more)
        user.set_password(password)
        user.save(using=self._db)
        Cart.objects.using(self._db).create(user=user)
        return user

    def create_superuser(self, **fields: Any) -> User:
        return self.create_user(**fields, is_staff=True, is_superuser=True)


class User(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(unique=True)
    country = models.CharField(max_length=2)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)

    objects = UserManager()

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar = ["country"]

    @property
    def first_name(self) -> str:
        """As the site's templates call the person; no field."""
        return self.email.partition("@")[0]


class Cart(models.Model):
    """What the site makes for each new user."""

    user = models.OneToOneField(User, on_delete=models.CASCADE)

    def __str__(self) -> str:
        return f"cart #{self.pk}"
